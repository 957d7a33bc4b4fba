//! Set-Cookie, retrieval, limits, files, merging.
