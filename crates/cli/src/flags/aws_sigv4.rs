//! The option `--aws-sigv4`: signs requests with AWS Signature Version 4.

use super::prelude::*;
use haul_policy::auth::SigV4Parameters;

pub(super) struct AwsSigV4Flag;

impl FlagDefinition for AwsSigV4Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "aws-sigv4",
            short: None,
            syntax: FlagSyntax::Value("provider1[:prvdr2[:reg[:srv]]]"),
            category: HelpCategory::Auth,
            important: false,
            help: "Sign requests with AWS Signature Version 4",
            doc: "Signs each request. The user of -u is the access key, the password the secret key. The first \
                  provider appears in the name of the algorithm, the second in the names of header fields; the \
                  default is aws:amz. If service and region are left out, they are the first labels of the host name. \
                  Host and the fields of -H are signed, and so is a body that is in memory. The body of an upload \
                  from a file or from standard input is declared to S3 as UNSIGNED-PAYLOAD; for other services haul \
                  refuses such an upload unless -H gives its SHA-256 as x-amz-content-sha256. For S3 the path is sent \
                  in the encoding that is signed: /dt=1 as /dt%3D1.",
            example: "haul --aws-sigv4 aws:amz:us-east-1:s3 -u KEY:SECRET https://bucket.s3.amazonaws.com/object",
            see_also: "user netrc header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let scope =
            SigV4Parameters::parse(value.text()?).map_err(|error| UsageErrorReason::bad_use(error.to_string()))?;
        args.request().signature = Some(scope);
        Ok(())
    }
}
