pub(crate) fn run(_: &[String]) -> crate::Result<()> { Ok(()) }
