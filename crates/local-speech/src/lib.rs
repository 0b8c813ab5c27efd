//! Speech engines that run on this machine: Moonshine hears, and Piper, espeak-ng or say speak.
