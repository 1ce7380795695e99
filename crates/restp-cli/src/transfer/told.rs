//! What the receiver says that it has, as the thread that reads the files wants to know it: file by file, chunk by chunk.

use super::message::Answer;
use super::{CHUNK_BYTES, Digest};
use std::collections::VecDeque;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Nobody says any more, or what is said has no sense: the transfer is over.
#[derive(Debug)]
pub struct Gone;

/// The answers about files, in their order.
#[derive(Debug)]
pub struct Told {
    answers: mpsc::Receiver<Answer>,
    /// Files that were told of.
    files: usize,
    /// And so many after these, of which nothing is there.
    nothing: u32,
    /// Bytes that are there of the last file that was told of.
    has: u64,
    digests: VecDeque<Digest>,
    /// Digests of it that have not come yet.
    missing: u64,
}

impl Told {
    /// By these answers.
    pub fn by(answers: mpsc::Receiver<Answer>) -> Self {
        Told {
            answers,
            files: 0,
            nothing: 0,
            has: 0,
            digests: VecDeque::new(),
            missing: 0,
        }
    }

    /// Bytes that are there of file `number`, counted from 0 and asked about in this order; `None`: not told yet, which does not
    /// happen to who can `wait`.
    ///
    /// # Errors
    /// When the transfer is over.
    pub fn of(&mut self, number: usize, wait: bool) -> Result<Option<u64>, Gone> {
        while self.files <= number {
            if self.nothing > 0 {
                (self.nothing, self.files, self.has) = (self.nothing - 1, self.files + 1, 0);
                continue;
            }
            match self.next(wait)? {
                None => return Ok(None),
                // Of a file that went without asking: nobody wants them.
                Some(Answer::Digests(digests)) => self.count(&digests)?,
                Some(_) if self.missing > 0 => return Err(Gone),
                Some(Answer::Nothing(files)) => self.nothing = files,
                Some(Answer::Has(bytes)) => {
                    (self.files, self.has) = (self.files + 1, bytes);
                    self.digests.clear();
                    self.missing = bytes.div_ceil(CHUNK_BYTES as u64);
                }
                Some(_) => return Err(Gone),
            }
        }
        Ok(Some(self.has))
    }

    /// The digest of the next chunk of the file that was asked about last.
    ///
    /// # Errors
    /// When the transfer is over.
    pub fn digest(&mut self) -> Result<Digest, Gone> {
        loop {
            if let Some(digest) = self.digests.pop_front() {
                return Ok(digest);
            }
            match self.next(true)? {
                Some(Answer::Digests(digests)) => {
                    self.count(&digests)?;
                    self.digests = digests.into();
                }
                _ => return Err(Gone),
            }
        }
    }

    fn count(&mut self, digests: &[Digest]) -> Result<(), Gone> {
        self.missing = self.missing.checked_sub(digests.len() as u64).ok_or(Gone)?;
        Ok(())
    }

    fn next(&mut self, wait: bool) -> Result<Option<Answer>, Gone> {
        if wait {
            return self.answers.blocking_recv().map(Some).ok_or(Gone);
        }
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answers: Vec<Answer>) -> Told {
        let (sender, receiver) = mpsc::channel(answers.len().max(1));
        for answer in answers {
            sender.try_send(answer).expect("room");
        }
        // It is never over in these tests.
        std::mem::forget(sender);
        Told::by(receiver)
    }

    #[test]
    fn files_are_told_of_in_their_order() {
        let chunk = CHUNK_BYTES as u64;
        let mut told = told(vec![
            Answer::Nothing(2),
            Answer::Has(chunk + 1),
            Answer::Digests(vec![[1; 32]]),
            Answer::Digests(vec![[2; 32]]),
            Answer::Has(5),
            Answer::Digests(vec![[3; 32]]),
        ]);
        assert_eq!(told.of(0, false).expect("told"), Some(0));
        assert_eq!(told.of(2, false).expect("told"), Some(chunk + 1));
        assert_eq!(
            [told.digest(), told.digest()].map(|digest| digest.expect("told")),
            [[1; 32], [2; 32]]
        );
        assert_eq!(told.of(3, false).expect("told"), Some(5));
        assert_eq!(told.of(4, false).expect("not yet"), None);
    }

    #[test]
    fn digests_of_files_that_went_without_asking_are_passed_over() {
        let mut told = told(vec![
            Answer::Has(5),
            Answer::Digests(vec![[3; 32]]),
            Answer::Has(6),
            Answer::Digests(vec![[4; 32]]),
        ]);
        assert_eq!(told.of(1, false).expect("told"), Some(6));
        assert_eq!(told.digest().expect("told"), [4; 32]);
    }

    /// A receiver may claim to have as much as it likes of a file that went without asking.
    #[test]
    fn digests_that_nobody_wants_take_no_room() {
        let mut answers = vec![Answer::Has(u64::MAX)];
        answers.extend(vec![Answer::Digests(vec![[3; 32]; 32]); 1000]);
        let mut told = told(answers);
        assert_eq!(told.of(1, false).expect("not yet"), None);
        assert!(told.digests.len() <= 32, "{}", told.digests.len());
    }

    #[test]
    fn what_has_no_sense_ends_the_transfer() {
        for answers in [
            vec![Answer::Digests(vec![[0; 32]])],
            vec![Answer::Has(5), Answer::Nothing(1)],
            vec![Answer::Has(5), Answer::Digests(vec![[0; 32]; 2])],
        ] {
            assert!(told(answers).of(1, false).is_err());
        }
    }
}
