//! The options of a command line as they were given, in order. A job (`--job`) stores them, so that
//! a later run of the job need not repeat them.
//!
//! ```
//! use haul_cli::given_option::GivenOption;
//!
//! let header = GivenOption::new("header", true, Some(b"Authorization: x"));
//! assert!(header.is_secret);
//! assert_eq!(header.secret_name.as_deref(), Some("authorization"));
//! assert_eq!(format!("{header:?}"), "GivenOption(\"header\")");
//! ```

use crate::secret_arguments;

/// The option name under which a URL without an option is stored.
pub const URL: &str = "url";

/// An option with its value, or a URL. `Debug` shows only the name, because the value may be a
/// secret.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenOption {
    /// The long name of the option, without dashes; [`URL`] for a URL that is given without an
    /// option.
    pub name: String,
    /// False for the `--no-` form of the option.
    pub is_on: bool,
    /// The value of the option. `None` if the option has no value.
    pub value: Option<Vec<u8>>,
    /// True if the value is a secret, such as a password.
    pub is_secret: bool,
    /// The public part of a secret value: the name of the header field or of the variable. It
    /// distinguishes the value from other values of the same option. `None` if the value has no
    /// such part.
    pub secret_name: Option<String>,
}

impl GivenOption {
    /// Creates an option. `is_on` is false for the `--no-` form of a switch. The name and the value
    /// decide whether the value is a secret.
    pub fn new(name: &str, is_on: bool, value: Option<&[u8]>) -> Self {
        let secret = value.filter(|value| secret_arguments::is_secret(name, value));
        Self {
            name: name.to_owned(),
            is_on,
            value: value.map(<[u8]>::to_vec),
            is_secret: secret.is_some(),
            secret_name: secret.and_then(|value| secret_arguments::secret_name(name, value)),
        }
    }
}

impl std::fmt::Debug for GivenOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GivenOption").field(&self.name).finish()
    }
}
