//! The target of the next exchange: the caller's, or where redirects have led from there, and which secrets it may
//! carry.

use std::borrow::Cow;

use haul_policy::redirect::{Hop, Secrets};
use haul_policy::secrets::referer;
use haul_policy::target::{Origin, Target};

use crate::request::method;

#[derive(Clone)]
pub(super) struct Aim {
    pub(super) target: Target,
    pub(super) method: Cow<'static, str>,
    /// Sends the content along.
    pub(super) with_body: bool,
    /// Decides whether the caller's secrets are sent to the target.
    pub(super) secrets: Secrets,
    /// True if the target has the first target's origin.
    pub(super) same_origin: bool,
    /// True if a redirect led from TLS to plain text.
    pub(super) is_downgraded: bool,
    pub(super) referer: Option<Vec<u8>>,
    /// The target's origin has answered with HTTP/1.0.
    pub(super) is_http10: bool,
    /// Requests go to the target of an earlier redirect, without a request to the caller's target
    /// first.
    pub(super) skips_redirects: bool,
    /// The number of redirects followed so far.
    pub(super) hops: u32,
    /// The first target's origin.
    pub(super) first: Origin,
    /// The caller's target, once a redirect has led elsewhere.
    left: Option<Box<(Target, Cow<'static, str>)>>,
}

impl Aim {
    /// The request that the caller asks for.
    pub(super) fn new(target: Target, method: Cow<'static, str>, with_body: bool, referer: Option<Vec<u8>>) -> Self {
        Self {
            first: target.origin(),
            target,
            method,
            with_body,
            secrets: Secrets::Keep,
            same_origin: true,
            is_downgraded: false,
            referer,
            is_http10: false,
            skips_redirects: false,
            hops: 0,
            left: None,
        }
    }

    /// A copy of this target for a part of the content: the place to which redirects have already
    /// led.
    pub(super) fn of_part(&self) -> Self {
        Self { is_http10: false, skips_redirects: false, hops: 0, left: None, ..self.clone() }
    }

    /// The target that the caller asked for.
    pub(super) fn asked(&self) -> &Target {
        self.left.as_deref().map_or(&self.target, |(target, _)| target)
    }

    /// A redirect leads on; `tells` the next server where from.
    pub(super) fn follow(&mut self, hop: Hop, tells: bool) {
        self.hops += 1;
        if tells {
            self.referer = referer(&self.target, &hop.target).map(String::into_bytes);
        }
        self.is_http10 &= hop.target.origin() == self.target.origin();
        let target = std::mem::replace(&mut self.target, hop.target);
        let method = std::mem::replace(&mut self.method, method(&hop.method));
        self.left.get_or_insert_with(|| Box::new((target, method)));
        self.with_body &= hop.keep_body;
        self.secrets = hop.secrets;
        self.same_origin = hop.same_origin;
        self.is_downgraded = hop.downgraded;
    }

    /// Returns true if a redirect has led away from the caller's target.
    pub(super) fn is_led(&self) -> bool {
        self.left.is_some()
    }

    /// Returns true if redirects have kept the caller's method.
    pub(super) fn keeps_method(&self) -> bool {
        self.left.as_deref().is_none_or(|(_, method)| *method == self.method)
    }

    /// Starts over at the caller's target, and forgets the redirects.
    pub(super) fn begin_anew(&mut self, with_body: bool, referer: Option<Vec<u8>>) {
        let (target, method) = match self.left.take() {
            Some(left) => *left,
            None => (self.target.clone(), self.method.clone()),
        };
        *self = Self::new(target, method, with_body, referer);
    }
}
