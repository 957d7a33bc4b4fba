//! Compares the bytes that haul delivered with the source's content, or with a prefix of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::digest::{Context, Digest, SHA256};
use testkit::byte_pattern::BytePattern;
use testkit::faulty::FaultPlan;

/// Compares haul's output, piece by piece, with each body that would be correct: the body before a
/// change of the content, the body after it, and the body cut to a Content-Length that is too
/// small.
pub(crate) struct ContentChecker {
    contents: Vec<CandidateContent>,
    len: u64,
    digest: Context,
    scratch: Vec<u8>,
}

/// A possible correct body, and the result of comparing it with the output so far.
struct CandidateContent {
    pattern: BytePattern,
    size: u64,
    /// True if all bytes of haul's output so far equal the beginning of this content.
    prefix: bool,
}

/// The result of comparing haul's whole output with the possible correct bodies.
pub(crate) struct ContentCheckResult {
    pub(crate) sha256: Digest,
    /// True if the output is a prefix of a possible correct body, or the whole body.
    pub(crate) prefix: bool,
    /// True if the output is the whole of a possible correct body.
    pub(crate) whole: bool,
}

impl ContentChecker {
    pub(crate) fn for_plan(plan: &FaultPlan) -> ContentChecker {
        let content = |version: u64, size| CandidateContent {
            pattern: BytePattern::new(plan.seed.wrapping_add(version)),
            size,
            prefix: true,
        };
        let mut contents = vec![content(0, plan.size)];
        if plan.change.is_some() {
            contents.push(content(1, plan.new_size.unwrap_or(plan.size)));
        }
        // A client cannot see more than the announced length.
        if plan.whole_length < 0 {
            contents.push(content(0, plan.size.saturating_add_signed(plan.whole_length)));
        }
        ContentChecker { contents, len: 0, digest: Context::new(&SHA256), scratch: Vec::new() }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.scratch.resize(bytes.len(), 0);
        for content in self.contents.iter_mut().filter(|content| content.prefix) {
            content.pattern.fill(self.len, &mut self.scratch);
            content.prefix = self.scratch == bytes;
        }
        self.len += bytes.len() as u64;
    }

    pub(crate) fn add_file(&mut self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                len => self.add(&buffer[..len]),
            }
        }
    }

    pub(crate) fn finish(self) -> ContentCheckResult {
        ContentCheckResult {
            sha256: self.digest.finish(),
            prefix: self.contents.iter().any(|content| content.prefix && self.len <= content.size),
            whole: self.contents.iter().any(|content| content.prefix && self.len == content.size),
        }
    }
}

/// Returns the SHA-256 of the unchanged body that the plan describes.
pub(crate) fn source_digest(plan: &FaultPlan) -> Digest {
    let pattern = BytePattern::new(plan.seed);
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 256 << 10];
    let mut at = 0;
    while at < plan.size {
        let len = (plan.size - at).min(buffer.len() as u64) as usize;
        pattern.fill(at, &mut buffer[..len]);
        digest.update(&buffer[..len]);
        at += len as u64;
    }
    digest.finish()
}

pub(crate) fn hex(digest: &Digest) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use testkit::faulty::ContentChangeTrigger;

    use super::*;

    fn found(plan: &FaultPlan, bytes: &[u8]) -> (bool, bool) {
        let mut checker = ContentChecker::for_plan(plan);
        bytes.chunks(7).for_each(|piece| checker.add(piece));
        let found = checker.finish();
        (found.prefix, found.whole)
    }

    #[test]
    fn checker_distinguishes_prefix_whole_and_mixture() {
        let plan = FaultPlan {
            size: 100,
            change: Some(ContentChangeTrigger::Bytes(5)),
            new_size: Some(90),
            ..FaultPlan::default()
        };
        let (old, new) = (BytePattern::new(1).slice(0, 100), BytePattern::new(2).slice(0, 100));
        assert_eq!(found(&plan, &old), (true, true));
        assert_eq!(found(&plan, &old[..99]), (true, false));
        assert_eq!(found(&plan, &new[..90]), (true, true));
        assert_eq!(found(&plan, &new[..91]), (false, false), "more than there is");
        assert_eq!(found(&plan, &[&old[..50], &new[50..90]].concat()), (false, false));
        assert_eq!(found(&plan, &[]), (true, false));
        assert_eq!(found(&FaultPlan { change: None, ..plan.clone() }, &new[..90]), (false, false));
        assert_eq!(found(&plan, &[&old[..50], &old[51..]].concat()), (false, false));
        let mut checker = ContentChecker::for_plan(&plan);
        checker.add(&old);
        assert_eq!(hex(&checker.finish().sha256), hex(&source_digest(&plan)));
    }
}
