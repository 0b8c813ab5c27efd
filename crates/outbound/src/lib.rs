//! What may be dialled on behalf of others: public addresses, and what an operator has opened.

mod address;
mod dial;
mod private_host;
mod secret_text;

pub use address::{AddressRule, Addresses, Refusal, literal_in};
pub use dial::{CheckedNames, OpenedHosts};
pub use private_host::{InvalidPrivateHost, PrivateHost};
pub use secret_text::SecretText;
