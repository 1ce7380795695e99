//! Many pieces of work on all processors, their results in order or as they come.

use super::RunError;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// As [`as_done`], the results in the order of their numbers.
///
/// # Errors
/// As [`as_done`].
pub(crate) fn in_order<R: Send>(
    threads: Option<usize>,
    count: usize,
    work: impl Fn(usize) -> R + Sync,
    mut each: impl FnMut(R) -> Result<ControlFlow<()>, RunError>,
) -> Result<ControlFlow<()>, RunError> {
    let (mut waiting, mut due) = (BTreeMap::new(), 0);
    as_done(threads, count, work, |index, result| {
        waiting.insert(index, result);
        while let Some(result) = waiting.remove(&due) {
            due += 1;
            if each(result)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Does `count` pieces of `work`, the next free thread taking the next piece, and hands over number and result of each as soon as it is
/// done.
///
/// # Errors
/// The first that `each` returns, or that threads cannot be started.
pub(crate) fn as_done<R: Send>(
    threads: Option<usize>,
    count: usize,
    work: impl Fn(usize) -> R + Sync,
    mut each: impl FnMut(usize, R) -> Result<ControlFlow<()>, RunError>,
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
        for (index, result) in receiver {
            let outcome = each(index, result);
            if !matches!(outcome, Ok(ControlFlow::Continue(()))) {
                stop.store(true, Ordering::Relaxed);
                return outcome;
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_long_piece_holds_nobody_back_but_where_there_is_an_order() {
        let (done, others) = mpsc::channel();
        let others = Mutex::new(others);
        let first_ends_last = |index: usize| {
            if index == 0 {
                others.lock().expect("whole").recv().expect("the others are done");
            }
            index
        };
        let mut order = Vec::new();
        let outcome = as_done(Some(2), 3, first_ends_last, |_, index| {
            order.push(index);
            if index == 2 {
                done.send(()).expect("the first waits");
            }
            Ok(ControlFlow::Continue(()))
        });
        assert!(matches!(outcome, Ok(ControlFlow::Continue(()))));
        assert_eq!(order, [1, 2, 0]);

        done.send(()).expect("there");
        order.clear();
        let outcome = in_order(Some(2), 3, first_ends_last, |index| {
            order.push(index);
            Ok(ControlFlow::Continue(()))
        });
        assert!(matches!(outcome, Ok(ControlFlow::Continue(()))));
        assert_eq!(order, [0, 1, 2]);
    }
}
