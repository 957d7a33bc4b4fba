use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp;
use t::Server;
use HTTP::Haul;
use JSON::PP;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    return [200, { 'Content-Type' => 'application/json; charset=utf-8' }, '{"a":[1,"\u00e9"]}'] if $request->{target} eq '/json';
    return [200, { 'Content-Type' => 'application/json' }, '{'] if $request->{target} eq '/broken';
    return [200, { 'Content-Type' => $request->{headers}{'content-type'} || 'none', 'X-Accept' => _joined($request->{headers}{accept}) || 'none' }, $request->{body}];
});
sub _joined { return ref $_[0] ? join ', ', @{ $_[0] } : $_[0] }
my $http = HTTP::Haul->new;

for my $case (
    [{ a => 1, b => 2 }, 'a=1&b=2'], [{ b => [2, 1], a => '' }, 'a=&b=2&b=1'], [[b => 2, a => 1], 'b=2&a=1'], [[b => [2, 1]], 'b=2&b=1'],
    [{ 'a b' => 'c+d&e=f' }, 'a+b=c%2Bd%26e%3Df'], [{ a => "\xe9" }, 'a=%C3%A9'], [{ a => "\x{263a}" }, 'a=%E2%98%BA'],
    [{ a => [1, [2, [3]], [], undef] }, 'a=1&a=2&a=3&a='], [[a => [[1], 2], b => 3], 'a=1&a=2&b=3'],
    [{ a => undef }, 'a='], [{}, ''], [[], ''], [{ a => 'A-Z_a.z~0' }, 'a=A-Z_a.z~0'], [{ a => "\0\n%" }, 'a=%00%0A%25'],
) {
    is($http->www_form_urlencode($case->[0]), $case->[1], "form: $case->[1]");
    my $response = $http->post_form($server->url('/x'), $case->[0], { headers => { 'content-type' => 'other', 'X-A' => 1 } });
    is($response->{content}, $case->[1], 'post_form sends the form');
    is($response->{headers}{'content-type'}, 'application/x-www-form-urlencoded', 'content type is sent');
}
SKIP: {
    eval { require HTTP::Tiny } or skip 'HTTP::Tiny is not installed', 1;
    my @all = map { (chr($_) => "v\x{100}" . chr $_) } 1 .. 255;
    ok($http->www_form_urlencode(\@all) eq HTTP::Tiny->new->www_form_urlencode(\@all), 'encoding is that of HTTP::Tiny');
}
# Tied arrays and hashes, which run Perl code once for each value. Shared ones are tied to the values.
{
    package Counted;
    our $fetched = 0;
    sub TIEARRAY { my ($class, @values) = @_; return bless [@values], $class }
    sub FETCHSIZE { return scalar @{ $_[0] } }
    sub FETCH { $fetched++; return $_[0][ $_[1] ] }
    package CountedHash;
    require Tie::Hash;
    our @ISA = ('Tie::StdHash');
    our $fetched = 0;
    sub FETCH { $fetched++; return $_[0]{ $_[1] } }
}
{
    tie my @values, 'Counted', 7, "caf\xe9";
    tie my @list, 'Counted', 'b', 1, 'a', [2];
    tie my %hash, 'CountedHash';
    %hash = (a => \@values, b => 3);
    is($http->www_form_urlencode({ a => \@values }), 'a=7&a=caf%C3%A9', 'tied array is the values of a form');
    is($Counted::fetched, 2, 'each value of a form is fetched once');
    is($http->www_form_urlencode(\@list), 'b=1&a=2', 'tied array is a form');
    is($http->www_form_urlencode(\%hash), 'a=7&a=caf%C3%A9&b=3', 'tied hash is a form');
    is($http->post_form($server->url('/x'), \%hash)->{content}, 'a=7&a=caf%C3%A9&b=3', 'tied hash is posted');
    is($http->get($server->url('/x'), { headers => { Accept => \@values } })->{headers}{'x-accept'}, "7, caf\xe9", 'tied array is the values of a field');
    tie my %headers, 'CountedHash';
    %headers = (Accept => 'text/x', 'User-Agent' => 'me', 'Content-Length' => 1);
    $CountedHash::fetched = 0;
    is($http->get($server->url('/x'), { headers => \%headers })->{headers}{'x-accept'}, 'text/x', 'tied hash is the fields');
    is($CountedHash::fetched, 3, 'each field is fetched once');
    tie my %options, 'CountedHash';
    %options = (headers => { Accept => 'text/y' }, content => 'tied');
    my $response = $http->put($server->url('/x'), \%options);
    is("$response->{headers}{'x-accept'} $response->{content}", 'text/y tied', 'tied hash is the options');
}
SKIP: {
    # The module threads::shared shares nothing unless threads is loaded.
    eval { require Config; $Config::Config{useithreads} } or skip 'no threads', 1;
    open my $out, '-|', $^X, (map { "-I$_" } @INC), '-e', <<'END' or die $!;
use threads; use threads::shared; use HTTP::Haul;
my @values :shared = (7, 8);
my @list :shared = ('b', 1);
print join ' ', map { HTTP::Haul->new->www_form_urlencode($_) } { a => \@values }, \@list;
END
    is(scalar <$out>, 'a=7&a=8 b=1', 'shared arrays keep their values');
}
my $endless = [];
push @$endless, $endless;
ok(!eval { $http->www_form_urlencode({ a => $endless }); 1 } && $@ =~ /too many arrays/, 'array that contains itself dies');
@$endless = ();
for my $bad ([1], \'x', sub { }) {
    ok(!eval { $http->www_form_urlencode($bad); 1 }, 'no form: ' . ref $bad);
}

# multipart/form-data
my $file = File::Temp->new(SUFFIX => '.txt');
print {$file} "file\r\ncontent";
close $file;
my $response = $http->post_multipart($server->url('/x'), [
    a => 1, b => ['x', "y\xe9"], c => { content => '{}', content_type => 'application/json' }, 'd"' => { file => "$file", filename => 'n"m.txt' },
]);
my ($boundary) = $response->{headers}{'content-type'} =~ /\Amultipart\/form-data; boundary=([\w-]+)\z/;
ok($boundary, 'multipart has a boundary');
my @parts = split /\r?\n?--\Q$boundary\E(?:--)?\r\n/, $response->{content};
is_deeply(\@parts, ['',
    qq(Content-Disposition: form-data; name="a"\r\n\r\n1),
    qq(Content-Disposition: form-data; name="b"\r\n\r\nx),
    qq(Content-Disposition: form-data; name="b"\r\n\r\ny\xe9),
    qq(Content-Disposition: form-data; name="c"\r\nContent-Type: application/json\r\n\r\n{}),
    qq(Content-Disposition: form-data; name="d%22"; filename="n%22m.txt"\r\nContent-Type: application/octet-stream\r\n\r\nfile\r\ncontent),
], 'multipart has all parts') or diag explain \@parts;
# Content is bytes and names are UTF-8, whatever encoding Perl has for the string.
for my $case (["\x89P\xe9", "\x89P\xe9", "\xc2\x89P\xc3\xa9"], ["\xc3\xbc", "\xc3\xbc", "\xc3\xbc"], ["\x{263a}", "\xe2\x98\xba", "\xe2\x98\xba"]) {
    my ($given, $content, $name) = @$case;
    my ($plain, $upgraded) = ($given, $given);
    utf8::upgrade($upgraded);
    for my $string ($plain, $upgraded) {
        my $sent = $http->post_multipart($server->url('/x'), [$string => { content => $string, filename => $string }])->{content};
        like($sent, qr/\r\n\r\n\Q$content\E\r\n--haul/, 'content of a part is bytes');
        like($sent, qr/ name="\Q$name\E"; filename="\Q$name\E"\r\n/, 'names of a part are UTF-8');
    }
}
ok(!eval { $http->post_multipart($server->url('/x'), 'x'); 1 }, 'post_multipart refuses text');

# JSON
$response = $http->get_json($server->url('/json'));
is_deeply($response->{json}, { a => [1, "\xe9"] }, 'get_json decodes the body');
like($http->get_json($server->url('/broken'))->{json_error}, qr/./, 'get_json reports invalid JSON');
for my $method (qw(post put patch)) {
    my $name = "${method}_json";
    my $response = $http->$name($server->url('/x'), { a => "\x{263a}" });
    is_deeply($response->{json}, { a => "\x{263a}" }, $name);
    is($response->{headers}{'content-type'}, 'application/json', 'content type is sent');
    is($response->{headers}{'x-accept'}, 'application/json', 'JSON is accepted');
}
# default_headers count as well as those of the request.
my $typed = HTTP::Haul->new(default_headers => { accept => 'application/vnd.api+json', 'Content-Type' => 'application/vnd.api+json' });
$response = $typed->post_json($server->url('/x'), { a => 1 });
is($response->{headers}{'x-accept'}, 'application/vnd.api+json', 'Accept of default_headers is sent with JSON');
is($response->{headers}{'content-type'}, 'application/vnd.api+json', 'Content-Type of default_headers is sent with JSON');
$response = HTTP::Haul->new(default_headers => { accept => undef, 'Content-Type' => undef })->post_json($server->url('/x'), { a => 1 });
is("$response->{headers}{'x-accept'} $response->{headers}{'content-type'}", 'application/json application/json', 'undefined default_headers do not replace those of JSON');

# In a program of its own, because the modules are loaded once. One of them is missing.
my $program = <<'END';
BEGIN { unshift @INC, sub { die "missing\n" if $_[1] =~ m{\A(?:Cpanel/)?JSON/XS\.pm\z}; return } }
use HTTP::Haul;
$SIG{__DIE__} = sub { print "handler: @_"; exit 1 };
my $http = HTTP::Haul->new;
print $http->get_json("$ARGV[0]/json")->{json}{a}[0];
$@ = 'mine';
print $http->get_json("$ARGV[0]/broken")->{json_error} ? ' broken' : '', " $@";
END
open my $out, '-|', $^X, (map { "-I$_" } @INC), '-e', $program, $server->url('') or die $!;
is(join('', <$out>), '1 broken mine', '$SIG{__DIE__} and $@ of a program stay out of JSON');

{
    package Listed;
    use overload '""' => sub { join '-', @{ $_[0] } }, fallback => 1;
}
is($http->www_form_urlencode({ a => bless [1, 2], 'Listed' }), 'a=1-2', 'object that is an array is sent as its text');
ok(!exists $http->get_json($server->url('/x'))->{json}, 'other content types are not decoded');
done_testing;
