package HTTP::Haul::Multipart;

# multipart/form-data (RFC 7578) as one string, so that a small form is sent in one write with the
# head.

use strict;
use warnings;

our $VERSION = '0.1.0';

# A plain value: text in characters is encoded as UTF-8, bytes stay.
sub _text {
    my ($text) = @_;
    $text = '' unless defined $text;
    utf8::encode($text) if utf8::is_utf8($text);
    return $text;
}

# The content of a part: the same bytes whatever encoding Perl has for the string, as in a request.
# Wide characters are encoded as UTF-8.
sub _bytes {
    my ($content) = @_;
    $content = '' unless defined $content;
    utf8::downgrade($content, 1) or utf8::encode($content);
    return $content;
}

# A name as UTF-8, as browsers send it. Bytes that are UTF-8 stay unchanged, as in a URL. Quotes and
# line ends are percent-encoded.
sub _quoted {
    my $text = _bytes($_[0]);
    my $is_utf8 = utf8::decode(my $copy = $text);
    utf8::encode($text) unless $is_utf8;
    $text =~ s/(["\r\n])/sprintf '%%%02X', ord $1/ge;
    return $text;
}

sub _slurp {
    my ($path) = @_;
    open my $in, '<:raw', $path or do { require Carp; Carp::croak("$path: $!") };
    local $/;
    my $content = <$in>;
    return defined $content ? $content : '';
}

sub _part {
    my ($name, $value) = @_;
    my %part = ref $value eq 'HASH' ? %$value : (content => _text($value));
    my $head = 'Content-Disposition: form-data; name="' . _quoted($name) . '"';
    my $content;
    if (defined $part{file}) {
        $content = _slurp($part{file});
        $part{filename} = ($part{file} =~ m{([^/]+)\z})[0] unless defined $part{filename};
    }
    else {
        $content = _bytes($part{content});
    }
    $head .= '; filename="' . _quoted($part{filename}) . '"' if defined $part{filename};
    $part{content_type} = 'application/octet-stream' if !defined $part{content_type} && defined $part{filename};
    if (defined $part{content_type}) {
        die "A line end in a part's content type\n" if $part{content_type} =~ /[\r\n]/;
        $head .= "\r\nContent-Type: $part{content_type}";
    }
    return "$head\r\n\r\n$content";
}

# Encodes a hash or an array of names and values. Returns the content type and the body. A value is
# text, an array of values, or a hash with content or file, filename, content_type.
sub encode {
    my ($data) = @_;
    my @pairs = ref $data eq 'HASH' ? map { ($_ => $data->{$_}) } sort keys %$data : ref $data eq 'ARRAY' ? @$data : ();
    if (!ref $data || @pairs % 2) {
        require Carp;
        Carp::croak("form data must be a hash reference or an array reference with an even number of terms\n");
    }
    my @parts;
    while (my ($name, $value) = splice @pairs, 0, 2) {
        push @parts, map { _part($name, $_) } ref $value eq 'ARRAY' ? @$value : $value;
    }
    my $boundary;
    do { $boundary = join '', 'haul-', map { ('0' .. '9', 'a' .. 'z')[rand 36] } 1 .. 24 }
        while grep { index($_, $boundary) >= 0 } @parts;
    my $body = join '', map { "--$boundary\r\n$_\r\n" } @parts;
    return ("multipart/form-data; boundary=$boundary", "$body--$boundary--\r\n");
}

1;
