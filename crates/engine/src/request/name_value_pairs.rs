//! Name-value pairs for queries and forms.
//!
//! ```
//! let client = haul::Client::new();
//! let kept = vec![("a".to_owned(), "1".to_owned())];
//! let request = client.post("http://h.test/").query(&kept).query([("b", "2 3")]).form(&[("c", "4")]).build()?;
//! assert_eq!(request.target().path_and_query(), "/?a=1&b=2+3");
//! # Ok::<(), haul::Error>(())
//! ```

use haul_policy::urlencode;

/// A name and a value for a query or a form, such as a tuple of two strings, or a reference to such
/// a tuple.
pub trait NameValuePair {
    /// Returns the name of the pair.
    fn name(&self) -> &str;

    /// Returns the value of the pair.
    fn value(&self) -> &str;
}

impl<N: AsRef<str>, V: AsRef<str>> NameValuePair for (N, V) {
    fn name(&self) -> &str {
        self.0.as_ref()
    }

    fn value(&self) -> &str {
        self.1.as_ref()
    }
}

impl<P: NameValuePair> NameValuePair for &P {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn value(&self) -> &str {
        (**self).value()
    }
}

/// Appends name-value pairs to `text`, in the encoding of `application/x-www-form-urlencoded`
/// forms.
pub(super) fn append_form_encoded<P: NameValuePair>(text: &mut String, pairs: impl IntoIterator<Item = P>) {
    for pair in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(&urlencode::form_encode(pair.name().as_bytes()));
        text.push('=');
        text.push_str(&urlencode::form_encode(pair.value().as_bytes()));
    }
}
