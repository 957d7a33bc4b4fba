//! Challenges, choice, Basic, Digest, sources.
