//! What a transfer has found on its paths, in plain words: why segments were lost, who shares a path, and what is done about it
//! (docs/services/adaptation.md). A function of counters; nothing is measured for it.

use restp::PathStats;
use restp_base::flow::LossCauses;
use restp_base::time::Duration;

/// Fewer packets say nothing of a share.
const ENOUGH_PACKETS: u64 = 100;
/// Of a thousand packets: fewer losses are not worth a word.
const WORTH_A_WORD: f64 = 0.5;
/// A path is silent for at least this long before anybody hears of it.
const SILENT: Duration = Duration::from_secs(1);

/// What one path looked like at two moments.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// Then; none: at the beginning.
    pub before: Option<&'a PathStats>,
    /// Now.
    pub now: &'a PathStats,
    /// How long nothing has come back although something was due.
    pub silent_for: Option<Duration>,
}

/// A sentence for each path that there is something to say of: `path 2: …` where there are several.
pub fn sentences(spans: &[Span<'_>]) -> Vec<String> {
    let several = spans.len() > 1;
    let numbered = spans.iter().enumerate();
    numbered
        .filter_map(|(index, span)| {
            let found = sentence(span)?;
            Some(if several {
                format!("path {}: {found}", index + 1)
            } else {
                found
            })
        })
        .collect()
}

/// The same of all the time that these paths have been there.
pub fn since_the_beginning(paths: &[PathStats]) -> Vec<String> {
    let span = |now| Span {
        before: None,
        now,
        silent_for: None,
    };
    sentences(&paths.iter().map(span).collect::<Vec<_>>())
}

/// What was found on one path, and what is done about it; none where everything is as it should be.
pub fn sentence(span: &Span<'_>) -> Option<String> {
    if let Some(silence) = span.silent_for.filter(|silence| *silence >= SILENT) {
        return Some(format!("silent for {:.0} s: probing", silence.as_secs_f64()));
    }
    let parts: Vec<_> = losses(span).into_iter().chain(neighbours(span)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// "1.1 % lost, corruption (98 %): rate kept".
fn losses(span: &Span<'_>) -> Option<String> {
    let since = |count: fn(&PathStats) -> u64| count(span.now).saturating_sub(span.before.map_or(0, count));
    let (sent, lost) = (since(|path| path.sent_packets), since(|path| path.lost_packets));
    if sent < ENOUGH_PACKETS || lost as f64 * 1000.0 < WORTH_A_WORD * sent as f64 {
        return None;
    }
    let share = format!("{:.1} % lost", lost as f64 * 100.0 / sent as f64);
    let earlier = span.before.and_then(|path| path.causes).unwrap_or_default();
    let causes = span.now.causes.map(|causes| causes.since(&earlier));
    Some(
        match causes.and_then(|causes| most(&causes, is_competing(span.now))) {
            None => share,
            Some(cause) => format!("{share}, {cause}"),
        },
    )
}

/// What most of the losses were taken for, how sure that was, and what followed.
fn most(causes: &LossCauses, is_competing: bool) -> Option<String> {
    let LossCauses {
        congestion,
        corruption,
        outage,
        late,
    } = *causes;
    let lossy = if is_competing {
        "shared as others share"
    } else {
        "rate kept"
    };
    let all = [
        (congestion, "congestion", "slowed down"),
        (corruption, "corruption", lossy),
        (outage, "an outage", "sent again at the same rate"),
        (late, "late, not lost", "waiting longer"),
    ];
    let (inferred, cause, reaction) = all
        .into_iter()
        .filter(|(inferred, ..)| inferred.segments > 0)
        .max_by_key(|(inferred, ..)| inferred.segments)?;
    Some(format!("{cause} ({} %): {reaction}", inferred.confidence()?))
}

/// "beside other traffic: sharing".
fn neighbours(span: &Span<'_>) -> Option<String> {
    is_competing(span.now).then(|| "beside other traffic: sharing".to_owned())
}

fn is_competing(path: &PathStats) -> bool {
    path.mode == Some("competing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp::PathAddress;
    use restp_base::observe::Cause;

    fn path(sent: u64, lost: u64, causes: &[(Cause, u64, u64)]) -> PathStats {
        let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let mut counts = LossCauses::default();
        for (cause, segments, percent) in causes {
            counts.add(*cause, *segments, *percent);
        }
        PathStats {
            sent_packets: sent,
            lost_packets: lost,
            causes: Some(counts),
            mode: Some("alone"),
            ..PathStats::new(PathAddress {
                local: nowhere,
                remote: nowhere,
            })
        }
    }

    fn said(now: &PathStats) -> Option<String> {
        sentence(&Span {
            before: None,
            now,
            silent_for: None,
        })
    }

    #[test]
    fn a_cause_is_said_with_its_share_its_confidence_and_what_follows() {
        for (causes, expected) in [
            (
                &[(Cause::Corruption, 10, 98), (Cause::Congestion, 1, 90)][..],
                "1.1 % lost, corruption (98 %): rate kept",
            ),
            (
                &[(Cause::Congestion, 11, 95)],
                "1.1 % lost, congestion (95 %): slowed down",
            ),
            (
                &[(Cause::Outage, 11, 100)],
                "1.1 % lost, an outage (100 %): sent again at the same rate",
            ),
            (
                &[(Cause::Corruption, 6, 60), (Cause::Late, 7, 100)],
                "1.1 % lost, late, not lost (100 %): waiting longer",
            ),
            (&[], "1.1 % lost"),
        ] {
            assert_eq!(said(&path(1_000, 11, causes)).as_deref(), Some(expected));
        }
        let mut unknown = path(1_000, 11, &[]);
        unknown.causes = None;
        assert_eq!(
            said(&unknown).as_deref(),
            Some("1.1 % lost"),
            "nobody infers causes"
        );
    }

    #[test]
    fn who_shares_a_path_is_said_and_then_corruption_costs_rate() {
        let mut shared = path(1_000, 0, &[]);
        shared.mode = Some("competing");
        assert_eq!(said(&shared).as_deref(), Some("beside other traffic: sharing"));
        let mut lossy = path(1_000, 20, &[(Cause::Corruption, 20, 97)]);
        lossy.mode = Some("competing");
        assert_eq!(
            said(&lossy).as_deref(),
            Some("2.0 % lost, corruption (97 %): shared as others share; beside other traffic: sharing")
        );
    }

    #[test]
    fn little_is_nothing() {
        assert_eq!(
            said(&path(99, 50, &[(Cause::Congestion, 50, 90)])),
            None,
            "few packets"
        );
        assert_eq!(
            said(&path(10_000, 4, &[(Cause::Congestion, 4, 90)])),
            None,
            "few losses"
        );
        assert_eq!(said(&path(10_000, 0, &[])), None);
    }

    #[test]
    fn silence_counts_more_than_what_was_before_and_paths_are_numbered() {
        let (clean, lossy) = (
            path(1_000, 0, &[]),
            path(1_000, 30, &[(Cause::Corruption, 30, 99)]),
        );
        let span = |now, seconds: Option<u64>| Span {
            before: None,
            now,
            silent_for: seconds.map(Duration::from_secs),
        };
        assert_eq!(sentences(&[span(&lossy, Some(3))]), ["silent for 3 s: probing"]);
        assert_eq!(
            sentences(&[span(&lossy, None), span(&clean, None), span(&lossy, Some(3))]),
            [
                "path 1: 3.0 % lost, corruption (99 %): rate kept",
                "path 3: silent for 3 s: probing"
            ]
        );
        assert_eq!(sentences(&[span(&clean, Some(0))]), Vec::<String>::new());
    }

    #[test]
    fn only_what_came_since_the_look_before_is_said() {
        let before = path(1_000, 100, &[(Cause::Congestion, 100, 90)]);
        let mut now = path(2_000, 110, &[(Cause::Congestion, 100, 90)]);
        if let Some(causes) = &mut now.causes {
            causes.add(Cause::Corruption, 10, 98);
        }
        let span = Span {
            before: Some(&before),
            now: &now,
            silent_for: None,
        };
        assert_eq!(
            sentence(&span).as_deref(),
            Some("1.0 % lost, corruption (98 %): rate kept")
        );
    }
}
