//! Gives up root's rights before the first connection, if apt runs the method as root. The process
//! becomes the user `APT::Sandbox::User`, as apt's own methods do.
//!
//! ```
//! use haul_cli::apt::drop_privileges::parse_ids;
//!
//! let text = "root:x:0:0:root:/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n";
//! assert_eq!(parse_ids(text, "_apt"), Some((42, 65534)));
//! assert_eq!(parse_ids(text, "ap"), None);
//! ```

use rustix::process::geteuid;

/// Switches the process to this user if it runs as root. Does nothing if `user` is `None` or
/// `root`. Must be called before the process starts another thread.
///
/// # Errors
/// The reason as a text. The process may still be root then, and must not fetch anything.
pub fn become_user_named(user: Option<&str>) -> Result<(), String> {
    let Some(user) = user.filter(|user| *user != "root" && geteuid().is_root()) else { return Ok(()) };
    let users = std::fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
    let (uid, gid) = parse_ids(&users, user).ok_or_else(|| format!("No user {user}, can't drop rights"))?;
    become_user(uid, gid).map_err(|error| format!("cannot become {user}: {error}"))
}

/// Returns the user ID and the group ID of `user` from `users`, the text of /etc/passwd. Returns
/// `None` if the user is not listed.
#[must_use]
pub fn parse_ids(users: &str, user: &str) -> Option<(u32, u32)> {
    let mut fields = users.lines().map(|line| line.split(':')).find_map(|mut fields| {
        let is_meant = fields.next() == Some(user);
        is_meant.then_some(fields)
    })?;
    let uid = fields.nth(1)?.parse().ok()?;
    Some((uid, fields.next()?.parse().ok()?))
}

#[cfg(target_os = "linux")]
fn become_user(uid: u32, gid: u32) -> std::io::Result<()> {
    use rustix::process::{Gid, Uid};
    use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    // Each call changes the calling thread alone; threads that start later inherit its state.
    set_no_new_privs(true)?;
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn become_user(_: u32, _: u32) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
