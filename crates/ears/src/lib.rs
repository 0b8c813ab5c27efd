//! Hears when a user speaks: voice activity, echo, the beginning and the end of an utterance.
