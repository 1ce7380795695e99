//! Which services an association is made of: one value, checked once (ResTP §3.2, §14).
//!
//! ```text
//! preset or pairs ──► Composition ──check──► ValidComposition ──► connection
//!                                                 │    ▲
//!                              Services::of (SYN) ▼    │ accept (responder)
//!                                            service bits of the header
//! ```
//!
//! | File | Holds |
//! |---|---|
//! | `spec` | the value: one field per service, and the numbers that belong to none |
//! | `key_table`, `keys` | every key a file or a command line may set, with its unit or choices; reading, printing |
//! | `rules` | the table of rules: what does not go together, why, and what to choose instead |
//! | `validity` | the check, its refusal and its warnings |
//! | `presets` | the named compositions of ResTP §17, and `default` |
//! | `needs` | what an application needs and its paths may suffer, to a preset and changes (OP-56) |
//! | `change` | what it takes to go from one to another while a connection runs |
//! | `negotiate` | header bits from a composition and back (OP-27) |

mod change;
mod key;
mod key_table;
mod keys;
mod needs;
mod negotiate;
mod presets;
mod rules;
mod spec;
mod validity;

#[cfg(test)]
mod documentation;
#[cfg(test)]
mod every;

pub use change::change;
pub(crate) use change::{Strength, Terms, agreed_key, under};
pub use key::{Key, SetError};
pub use key_table::KEYS;
pub use needs::{Arrival, Bandwidth, NEEDS, NeedError, Needs, Order};
pub use negotiate::accept;
pub use presets::{PRESETS, Preset};
pub use rules::{Rule, Verdict, rules};
pub use spec::Composition;
pub use validity::{Breach, Refusal, ValidComposition};
