//! `restp reproduce`: the published experiments, and a page for each.

use crate::args::Reproduce;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use restp::clock::Clock;
use restp_base::names::hint;
use restp_lab::checker::{Tally, Verdict};
use restp_lab::page::{File, Page};
use restp_lab::{Line, Options, Scenario, Summary};
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What every experiment is meant by.
const ALL: &str = "all";

/// A scenario that has a page, and the folder it is in: a name for all that are there.
struct Experiment {
    folder: String,
    scenario: Scenario,
    page: Page,
    file: PathBuf,
}

/// One experiment, as a line of a list.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    experiment: &'a str,
    folder: &'a str,
    title: &'a str,
    runs: u64,
}

impl Listed<'_> {
    fn text(&self) -> String {
        let Listed {
            experiment,
            folder,
            title,
            runs,
        } = self;
        format!("{experiment:24} {folder:16} {runs:5} runs  {title}")
    }
}

/// One experiment, done.
#[derive(Debug, Serialize)]
struct Done {
    experiment: String,
    /// Verdicts, and how they came out.
    verdicts: usize,
    hold: usize,
    /// Do not hold, and the page says why.
    explained: usize,
    fail: usize,
    /// Speak of results that are not there.
    no_data: usize,
    /// Those that do not hold, and those without data.
    failing: Vec<Verdict>,
    files: Vec<PathBuf>,
    runs: u64,
    /// Time of this experiment, and that of all its runs one after the other.
    wall_seconds: f64,
    run_seconds: f64,
}

/// Runs the experiments asked for and writes their pages.
///
/// # Errors
/// Exit code 2 for an experiment that does not exist or a scenario that is none; 1 when a run fails, a page cannot be
/// written, or a claim does not hold and nothing explains it.
pub fn execute(arguments: &Reproduce, output: Output) -> Result<(), Failure> {
    let experiments = chosen(&arguments.ids, known(&folder(arguments))?)?;
    if arguments.list {
        return experiments.iter().try_for_each(|one| {
            let listed = Listed {
                experiment: one.scenario.id(),
                folder: &one.folder,
                title: one.scenario.title(),
                runs: runs(&one.scenario, arguments),
            };
            output.result(&listed, Listed::text)
        });
    }
    std::fs::create_dir_all(&arguments.output).map_err(|error| unwritable(&arguments.output, &error))?;
    let progress = Progress::new();
    let mut failed = Vec::new();
    let (mut wall, mut cpu) = (0.0, 0.0);
    for Experiment { scenario, page, .. } in &experiments {
        let done = reproduce(scenario, page, arguments, &progress)?;
        progress.aside(|| output.result(&done, sentence))?;
        (wall, cpu) = (wall + done.wall_seconds, cpu + done.run_seconds);
        if done.fail + done.no_data > 0 {
            failed.push(done.experiment);
        }
    }
    let several = match experiments.len() {
        1 => "1 experiment".to_owned(),
        count => format!("{count} experiments"),
    };
    output.text(&format!("{several} in {wall:.0} s, {cpu:.0} s of computing"))?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::operation(format!(
            "claims of {} fail without an explanation, or have no data; their pages say which",
            failed.join(", ")
        ))),
    }
}

/// The folder named; `scenarios` here; or what was installed with the command, in `share` beside its `bin`.
fn folder(arguments: &Reproduce) -> PathBuf {
    let here = PathBuf::from("scenarios");
    let installed = || {
        let program = std::env::current_exe().ok()?;
        Some(program.parent()?.parent()?.join("share/restp/scenarios"))
    };
    match &arguments.scenarios {
        Some(named) => named.clone(),
        None if here.is_dir() => here,
        None => installed().filter(|folder| folder.is_dir()).unwrap_or(here),
    }
}

/// Every scenario in `folder` and the folders in it that has a page, by folder and name.
fn known(folder: &Path) -> Result<Vec<Experiment>, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::input(format!(
            "{}: no scenarios here ({error}); name their folder with --scenarios, such as scenarios of the repository",
            folder.display()
        ))
    };
    let entries = |dir: &Path| -> Result<Vec<PathBuf>, std::io::Error> {
        let mut all: Vec<PathBuf> = std::fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        all.sort();
        Ok(all)
    };
    let mut all = Vec::new();
    let mut all_folders = vec![folder.to_owned()];
    all_folders.extend(
        entries(folder)
            .map_err(|error| unreadable(&error))?
            .into_iter()
            .filter(|path| path.is_dir()),
    );
    for dir in all_folders {
        for file in entries(&dir).map_err(|error| unreadable(&error))? {
            if !has_page(&file) {
                continue;
            }
            let scenario = Scenario::read(&file).map_err(Failure::input)?;
            if let Some(page) = scenario.page().cloned() {
                let folder = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
                one_page_each(&all, &scenario, &file)?;
                all.push(Experiment {
                    folder,
                    scenario,
                    page,
                    file,
                });
            }
        }
    }
    match all.is_empty() {
        true => Err(unreadable(&"none has a [page]")),
        false => Ok(all),
    }
}

/// The id names the page, so a second experiment with it would overwrite the first one's.
fn one_page_each(known: &[Experiment], scenario: &Scenario, file: &Path) -> Result<(), Failure> {
    let Some(first) = known.iter().find(|one| one.scenario.id() == scenario.id()) else {
        return Ok(());
    };
    Err(Failure::input(format!(
        "{} and {} have the same id, \"{}\"; give one of them another",
        first.file.display(),
        file.display(),
        scenario.id()
    )))
}

/// Other files in these folders are scenarios of other kinds, which are not read.
fn has_page(file: &Path) -> bool {
    let is_scenario = file.extension().is_some_and(|extension| extension == "toml");
    is_scenario
        && std::fs::read_to_string(file)
            .is_ok_and(|text| text.lines().any(|line| line.trim_end() == "[page]"))
}

/// Those with these names, or in folders with these names where no experiment has them; all of them when there is none.
fn chosen(ids: &[String], mut known: Vec<Experiment>) -> Result<Vec<Experiment>, Failure> {
    let names: Vec<String> = known
        .iter()
        .map(|experiment| experiment.scenario.id().to_owned())
        .collect();
    let mut folders: Vec<String> = known.iter().map(|experiment| experiment.folder.clone()).collect();
    folders.dedup();
    let wanted = |id: &String| id == ALL || names.contains(id) || folders.contains(id);
    if let Some(stranger) = ids.iter().find(|id| !wanted(id)) {
        return Err(Failure::input(format!(
            "there is no experiment \"{stranger}\"{}; write {ALL}, a folder ({}) or some of: {}",
            hint(stranger, names.iter().chain(&folders).map(String::as_str)),
            folders.join(", "),
            names.join(", ")
        )));
    }
    if !ids.is_empty() && !ids.iter().any(|id| id == ALL) {
        known.retain(|one| {
            let is_named = |id: &String| id == one.scenario.id() || *id == one.folder && !names.contains(id);
            ids.iter().any(is_named)
        });
    }
    Ok(known)
}

/// How many simulations it takes.
fn runs(scenario: &Scenario, arguments: &Reproduce) -> u64 {
    let points = scenario.points().iter();
    points
        .map(|point| arguments.runs.unwrap_or(point.plan.runs))
        .sum()
}

fn reproduce(
    scenario: &Scenario,
    page: &Page,
    arguments: &Reproduce,
    progress: &Progress,
) -> Result<Done, Failure> {
    let clock = Clock::start();
    let stopwatch = || clock.now().as_secs_f64();
    let options = Options {
        runs: arguments.runs,
        stopwatch: Some(&stopwatch),
        ..Options::DEFAULT
    };
    let total = runs(scenario, arguments);
    let line = progress.steps(scenario.id(), total);
    let (mut summaries, mut verdicts) = (Vec::<Summary>::new(), Vec::<Verdict>::new());
    let mut run_seconds = 0.0;
    restp_lab::run(scenario, &options, |result| {
        match result {
            Line::Run(run) => {
                line.step();
                run_seconds += run.wall_seconds.unwrap_or(0.0);
            }
            Line::Summary(summary) => summaries.push(summary),
            Line::Verdict(verdict) => verdicts.push(verdict),
        }
        ControlFlow::Continue(())
    })
    .map_err(Failure::operation)?;
    let named = arguments.scenarios.as_ref();
    let named = named.map(|folder| format!(" --scenarios {}", folder.display()));
    let command = format!("restp reproduce {}{}", scenario.id(), named.unwrap_or_default());
    let files = page.files(scenario.id(), &command, &summaries, &verdicts);
    let written = files
        .iter()
        .map(|file| write(&arguments.output, file))
        .collect::<Result<_, _>>()?;
    let Tally {
        hold,
        explained,
        fail,
        no_data,
    } = Tally::of(&verdicts);
    Ok(Done {
        experiment: scenario.id().to_owned(),
        verdicts: verdicts.len(),
        hold,
        explained,
        fail,
        no_data,
        failing: verdicts
            .into_iter()
            .filter(|verdict| verdict.held != Some(true))
            .collect(),
        files: written,
        runs: total,
        wall_seconds: stopwatch(),
        run_seconds,
    })
}

fn write(folder: &Path, file: &File) -> Result<PathBuf, Failure> {
    let path = folder.join(&file.name);
    std::fs::write(&path, &file.text).map_err(|error| unwritable(&path, &error))?;
    Ok(path)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::operation(format!(
        "{}: cannot be written ({error}); choose another folder with --output",
        path.display()
    ))
}

fn sentence(done: &Done) -> String {
    let Done {
        experiment,
        verdicts,
        hold,
        explained,
        fail,
        no_data,
        ..
    } = done;
    let mut text = format!("{experiment}: {hold} of {verdicts} verdicts hold");
    if *explained > 0 {
        text.push_str(&format!(", {explained} fail for reasons the page gives"));
    }
    if *fail > 0 {
        text.push_str(&format!(", {fail} FAIL"));
    }
    if *no_data > 0 {
        text.push_str(&format!(", {no_data} without data"));
    }
    format!("{text} ({:.1} s)", done.wall_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_its_experiments_and_an_experiment_of_the_same_name_goes_first() {
        let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let of = |name: &str| {
            let known = known(&scenarios).expect("the scenarios of the repository");
            let chosen = chosen(&[name.to_owned()], known).map_err(|_| ());
            chosen.map(|all| {
                all.iter()
                    .map(|one| one.scenario.id().to_owned())
                    .collect::<Vec<_>>()
            })
        };
        let cmt = of("cmt").expect("a folder");
        assert!(
            cmt.len() > 1 && cmt.iter().all(|id| id.starts_with("cmt-")),
            "{cmt:?}"
        );
        assert_eq!(of("witnesses").expect("an experiment"), ["witnesses"]);
        assert!(of("cm").is_err());
    }
}
