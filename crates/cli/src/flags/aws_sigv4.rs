//! `--aws-sigv4`.

use super::prelude::*;
use haul_policy::auth::SigV4;

pub(super) struct AwsSigV4;

impl Flag for AwsSigV4 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "aws-sigv4",
            short: None,
            takes: Takes::Value("provider1[:prvdr2[:reg[:srv]]]"),
            category: Category::Auth,
            important: false,
            help: "Sign requests by AWS's Signature Version 4",
            doc: "Signs each request with the secret key that -u has as its password; the access key is the user. \
                  The first provider is in the name of the algorithm, the second in those of fields; left out they are \
                  aws:amz. Service and region that are left out are the first labels of the host's name. Host and the \
                  fields of -H are signed, and the content if it is in memory: an upload from a file or from standard \
                  input is told to S3 as UNSIGNED-PAYLOAD, and to other services it is refused, unless -H has its SHA-256 \
                  as x-amz-content-sha256. S3's paths are sent in the encoding that it signs: /dt=1 as /dt%3D1.",
            example: "haul --aws-sigv4 aws:amz:us-east-1:s3 -u KEY:SECRET https://bucket.s3.amazonaws.com/object",
            see_also: &["user", "netrc", "header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let scope = SigV4::parse(value.text()?).map_err(|error| Reason::bad_use(error.to_string()))?;
        args.request().signature = Some(scope);
        Ok(())
    }
}
