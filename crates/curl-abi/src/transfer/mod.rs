//! A transfer in progress: the program's callbacks, and the types through which the engine calls
//! them.
//!
//! ```text
//!  curl_easy_perform    engine ── EasySink, EasyObserver, EasyRequestContentReader ──▶ RunningTransfer ──▶ callbacks
//!  curl_multi_perform   engine's thread ──▶ TransferEventQueue ──▶ the program's thread ──▶ RunningTransfer ──▶ callbacks
//! ```
//!
//! `RunningTransfer` calls the callbacks, always on a thread of the program.

pub(crate) mod callbacks;
pub(crate) mod easy_driver;
pub(crate) mod error_text;
pub(crate) mod request_content_segments;
pub(crate) mod running;
