//! Many pieces of work on all processors, their results in order.

use super::RunError;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Does `count` pieces of `work`, the next free thread taking the next piece, and hands over the results in the
/// order of their numbers.
///
/// # Errors
/// The first that `each` returns, or that threads cannot be started.
pub(crate) fn in_order<R: Send>(
    threads: Option<usize>,
    count: usize,
    work: impl Fn(usize) -> R + Sync,
    mut each: impl FnMut(R) -> Result<ControlFlow<()>, RunError>,
) -> Result<ControlFlow<()>, RunError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| RunError::Threads(error.to_string()))?;
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sender = sender;
            pool.broadcast(|_| {
                let sender = sender.clone();
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || sender.send((index, work(index))).is_err() {
                        break;
                    }
                }
            });
        });
        let (mut waiting, mut due) = (BTreeMap::new(), 0);
        let mut outcome = Ok(ControlFlow::Continue(()));
        for (index, result) in receiver {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&due) {
                due += 1;
                outcome = each(result);
                if !matches!(outcome, Ok(ControlFlow::Continue(()))) {
                    stop.store(true, Ordering::Relaxed);
                    return outcome;
                }
            }
        }
        outcome
    })
}
