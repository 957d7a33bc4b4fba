//! The option `--shard`: divides all hosts into parts (shards), and fetches only the URLs whose
//! hosts are in one of them.

use haul_policy::shard::UrlListShard;

use super::prelude::*;

pub(super) struct ShardFlag;

impl FlagDefinition for ShardFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "shard",
            short: None,
            syntax: FlagSyntax::Value("K/N"),
            category: HelpCategory::Parallel,
            important: false,
            help: "Fetch only the URLs of shard K of N",
            doc: "Divides the hosts into N shards, numbered from 0, and fetches only the URLs whose host is in shard \
                  K. N runs with the same list, on as many machines, fetch each URL once, and only one of them sends \
                  requests to a host, so that limits for a host hold for all together. A host is a scheme, a name and a \
                  port, as for --parallel-max-host and --rate-host. URLs of arguments, globs and lists are chosen; those \
                  of redirects, of --then, --depth and --paginate are fetched by the run that found them. Shard 0 \
                  reports what is not a URL.",
            example: "haul --shard 0/4 --jsonl --input-file urls.txt",
            see_also: "input-file rate-host parallel-max-host",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let shard =
            UrlListShard::parse(value.content()?).map_err(|error| UsageErrorReason::bad_use(error.to_string()))?;
        args.global.shard = Some(shard);
        Ok(())
    }
}
