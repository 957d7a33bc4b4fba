use super::*;

fn hex(byte: u8, algorithm: ChecksumAlgorithm) -> String {
    format!("{byte:02x}").repeat(algorithm.length())
}

fn sha256(byte: u8) -> String {
    hex(byte, ChecksumAlgorithm::Sha256)
}

/// Parses a checksum list and looks up the file `name`. Returns the algorithm and the first byte of
/// its digest.
fn picked(text: &str, name: &str) -> Result<(ChecksumAlgorithm, u8), DigestLookupError> {
    pick(text.as_bytes(), name).map(|digest| (digest.algorithm(), digest.bytes()[0]))
}

fn pick(text: &[u8], path: &str) -> Result<ExpectedDigest, DigestLookupError> {
    ChecksumList::new(text.to_vec()).find(path)
}

fn one(text: &str) -> Result<(ChecksumAlgorithm, u8), DigestLookupError> {
    picked(text, "f.iso")
}

const OURS: Result<(ChecksumAlgorithm, u8), DigestLookupError> = Ok((ChecksumAlgorithm::Sha256, 0xaa));

#[test]
fn checksum_list_accepts_every_line_format() {
    let (ours, other) = (sha256(0xaa), sha256(0xbb));
    for line in [
        format!("{ours}  f.iso"),
        format!("{ours} *f.iso"),
        format!("{ours} f.iso"),
        format!("{ours}\tf.iso"),
        format!("{}  f.iso", ours.to_uppercase()),
        format!("{ours}  ./f.iso"),
        format!("{ours}  build/out/f.iso"),
        format!("SHA256 (f.iso) = {ours}"),
        format!("SHA256(f.iso)= {ours}"),
        format!("SHA2-256(dir/f.iso)= {ours}"),
        format!("sha256 (f.iso) = {ours}"),
        format!("{ours}  f.iso\r"),
    ] {
        assert_eq!(one(&line), OURS, "{line}");
        for list in [
            format!("{line}\n"),
            format!("\u{feff}{line}\n"),
            format!("# sums\n\n{other}  a\n{line}\n{other}  f.iso.sig\n"),
            format!(
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{line}\n-----BEGIN PGP SIGNATURE-----\n\nAbC=\n"
            ),
        ] {
            assert_eq!(one(&list), OURS, "{list}");
        }
    }
}

#[test]
fn digest_without_name_counts_only_as_sole_line() {
    let ours = sha256(0xaa);
    for text in [ours.clone(), format!("# of f.iso\n\n  {ours} \r\n"), format!("{ours}  -\n"), format!("{ours} *-\n")] {
        assert_eq!(one(&text), OURS, "{text}");
    }
    for text in [format!("{ours}\n{ours}\n"), format!("<html>\n{ours}\n</html>\n"), format!("{ours}\nSorry!\n")] {
        assert_eq!(one(&text), Err(DigestLookupError::NotAList), "{text}");
    }
    assert_eq!(one(&format!("{ours}\n{}  f.iso\n", sha256(0xbb))), Ok((ChecksumAlgorithm::Sha256, 0xbb)));
}

#[test]
fn strongest_listed_checksum_of_a_file_is_used() {
    let mut list = String::new();
    for (at, algorithm) in
        [ChecksumAlgorithm::Sha512, ChecksumAlgorithm::Sha1, ChecksumAlgorithm::Sha384, ChecksumAlgorithm::Sha256]
            .iter()
            .enumerate()
    {
        let own = hex(at as u8, *algorithm);
        assert_eq!(one(&format!("{own}  f.iso\n")), Ok((*algorithm, at as u8)));
        list.push_str(&format!("{own}  f.iso\n"));
    }
    assert_eq!(one(&list), Ok((ChecksumAlgorithm::Sha512, 0)));
    // A tag that contradicts the length, or names another function of the same length.
    for tag in ["SHA512", "SHA3-256", "BLAKE2s", "SHA512/256", "MD5", ""] {
        let text = format!("{tag} (f.iso) = {}\n", sha256(0xaa));
        assert_eq!(one(&text), Err(DigestLookupError::NotAList), "{text}");
    }
}

#[test]
fn ambiguous_or_missing_checksum_entries_are_errors() {
    let (ours, other) = (sha256(0xaa), sha256(0xbb));
    assert_eq!(one(&format!("{ours}  g.iso\n")), Err(DigestLookupError::NotListed));
    assert_eq!(one(&format!("{ours}  xf.iso\n{ours}  F.ISO\n")), Err(DigestLookupError::NotListed));
    assert_eq!(one(&format!("{ours}  f.iso\n{other}  f.iso\n")), Err(DigestLookupError::Ambiguous));
    assert_eq!(one(&format!("{ours}  f.iso\n{other}  f.iso\n{ours}  f.iso\n")), Err(DigestLookupError::Ambiguous));
    assert_eq!(one(&format!("{ours}  f.iso\n{ours}  f.iso\n")), OURS);
    assert_eq!(one(&format!("{ours}  amd64/f.iso\n{other}  arm64/f.iso\n")), Err(DigestLookupError::Ambiguous));
    assert_eq!(one(&format!("{other}  arm64/f.iso\n{ours}  f.iso\n")), OURS);
    assert_eq!(
        picked(&format!("{ours}  amd64/f\n{other}  arm64/f\n"), "arm64/f"),
        Ok((ChecksumAlgorithm::Sha256, 0xbb))
    );
    for text in ["", "\n\n", "<html>Not found</html>", "404", "f.iso"] {
        assert_eq!(one(text), Err(DigestLookupError::NotAList), "{text}");
    }
    let md5 = "d41d8cd98f00b204e9800998ecf8427e";
    for text in [format!("{md5}  f.iso\n"), format!("MD5 (f.iso) = {md5}\n"), format!("{md5}\n")] {
        assert_eq!(one(&text), Err(DigestLookupError::Md5Only), "{text}");
    }
    assert_eq!(one(&format!("{md5}  f.iso\n{ours}  f.iso\n")), OURS);
}

#[test]
fn checksum_entry_with_longest_path_suffix_is_used() {
    let (ours, other, third) = (sha256(0xaa), sha256(0xbb), sha256(0xcc));
    let list = format!("{other}  arm64/f.iso\n{ours}  ./12/amd64/f.iso\n{third}  11/amd64/f.iso\n");
    for path in ["/pub/12/amd64/f.iso", "/12/amd64/f.iso", "12/amd64/f.iso", "//12//./amd64/f.iso"] {
        assert_eq!(picked(&list, path), OURS, "{path}");
    }
    assert_eq!(picked(&list, "/pub/11/amd64/f.iso"), Ok((ChecksumAlgorithm::Sha256, 0xcc)));
    assert_eq!(picked(&list, "/x/arm64/f.iso"), Ok((ChecksumAlgorithm::Sha256, 0xbb)));
    assert_eq!(picked(&list, "/x/amd64/f.iso"), Err(DigestLookupError::Ambiguous));
    assert_eq!(picked(&list, "/f.iso"), Err(DigestLookupError::Ambiguous));
    // Whole names go before those with further folders; a part is compared as a whole.
    assert_eq!(picked(&format!("{other}  old/f.iso\n{ours}  f.iso\n"), "/new/f.iso"), OURS);
    assert_eq!(picked(&format!("{other}  xamd64/f.iso\n{ours}  amd64/f.iso\n"), "/amd64/f.iso"), OURS);
    // The checksum of another folder's file does not stand in for MD5, one without a folder does.
    let md5 = "d41d8cd98f00b204e9800998ecf8427e";
    assert_eq!(picked(&format!("{md5}  a/f.iso\n{other}  b/f.iso\n"), "/a/f.iso"), Err(DigestLookupError::Md5Only));
    assert_eq!(picked(&format!("{md5}  a/f.iso\n{ours}  f.iso\n"), "/a/f.iso"), OURS);
}

#[test]
fn long_checksum_list_finds_each_file() {
    const FILES: usize = 60_000;
    let name = |at: usize| format!("{at:05}/index.json");
    let text: String = (0..FILES).map(|at| format!("{at:064x}  {}\n", name(at))).collect();
    let list = ChecksumList::new(text.into_bytes());
    // With a scan of the list for each file this takes minutes.
    for at in 0..FILES {
        let digest = list.find(&format!("/pub/{}", name(at))).unwrap();
        assert_eq!(digest.to_string(), format!("sha256:{at:064x}"));
    }
}

#[test]
fn checksum_list_finds_escaped_and_unusual_names() {
    let ours = sha256(0xaa);
    for (line, name) in [
        (format!("{ours}  a b (1).iso"), "a b (1).iso"),
        (format!("SHA256 (a (1)) = {ours}"), "a (1)"),
        (format!("SHA256 (a) = b) = {ours}"), "a) = b"),
        (format!("{ours} **star"), "*star"),
        (format!("\\{ours}  a\\nb"), "a\nb"),
        (format!("\\{ours}  a\\\\b"), "a\\b"),
        (format!("{ours}  a\\nb"), "a\\nb"),
        (format!("\\SHA256 (a\\nb) = {ours}"), "a\nb"),
        (format!("{ours}  größe"), "größe"),
    ] {
        assert_eq!(picked(&line, name), OURS, "{line}");
    }
}

#[test]
fn arbitrary_checksum_list_yields_no_wrong_digest() {
    let ours = sha256(0xaa);
    let first = format!("SHA256 (f.iso) = {ours}");
    let list = format!("{first}\n{}  x\n\\{}  a\\nb\n", sha256(0xbb), sha256(0xcc));
    let right = pick(list.as_bytes(), "f.iso").expect("it is listed");
    // Cut at every place: whole or nothing.
    for cut in 0..list.len() {
        if let Ok(digest) = pick(&list.as_bytes()[..cut], "f.iso") {
            assert!(cut >= first.len() && digest == right, "cut at {cut}");
        }
    }
    // Every byte changed in several ways: the digest is the listed one, unless the change hit its
    // own digits.
    let digits = first.len() - 64..first.len();
    for at in 0..list.len() {
        for change in [0x00, 0x0a, 0x20, 0x28, 0x29, 0x3d, 0x5c, 0x30, 0x80, 0xff] {
            let mut bytes = list.clone().into_bytes();
            bytes[at] = change;
            if let Ok(digest) = pick(&bytes, "f.iso") {
                assert!(digest == right || digits.contains(&at), "{change:#x} at {at}");
            }
        }
    }
    for text in
        [&b"\xff\xfe\0a"[..], b"\\", b"(", b")(", b"() =", b"=", b"\0\0\0\0", &[b'a'; 100_000], &[b'('; 100_000]]
    {
        assert!(pick(text, "f.iso").is_err());
        assert!(pick(text, "").is_err());
    }
}
