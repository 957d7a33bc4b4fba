use strict;
use warnings;
use lib '.';
use Test::More;
use File::Temp qw(tempdir);
use Time::HiRes qw(time);

BEGIN {
    eval { require LWP::UserAgent; require HTTP::Request::Common; 1 } or plan(skip_all => 'LWP is not installed');
}
use t::Server;
use LWP::Protocol::haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy PERL_LWP_ENV_PROXY)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    if ($target eq '/login') {
        return [302, { Location => '/echo', 'Set-Cookie' => 'sid=1' }, ''];
    }
    if ($target eq '/basic') {
        return [401, { 'WWW-Authenticate' => 'Basic realm="r"' }, 'who?'] if ($request->{headers}{authorization} || '') ne 'Basic dTpw';
    }
    return [200, { 'X-Many' => [1, 2], 'Content-Type' => 'text/plain' }, "$request->{connection}.$request->{number}"] if $target eq '/count';
    return [200, [['X-Field', 1], ['x-field', 2], ['X-FIELD', 3]], ''] if $target eq '/spellings';
    return [200, { 'Content-Type' => 'text/plain' }, 'x' x 300_000] if $target eq '/big';
    return [200, { 'Content-Type' => 'text/html' }, '<html><head><title>Found</title><base href="http://b.example/"></head>'] if $target eq '/html';
    return [200, { 'Content-Type' => 'text/html' }, $request->{body}] if $target eq '/page';
    return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"); 0 } if $target eq '/short';
    return sub { 1 } if $target eq '/hang';
    return sub { t::Server::write_all($_[0], "no head\n\nhere"); 0 } if $target eq '/headless';
    return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n") } if $target eq '/chunked';
    return [200, { Connection => 'close' }, $request->{version}] if $target eq '/version';
    if ($target =~ m{\Ahttp://proxied\.example/}) {
        return [200, {}, "by proxy $target " . ($request->{headers}{'proxy-authorization'} || '')];
    }
    return [200, { 'Content-Type' => 'text/plain' }, join "\n", "$request->{method} $target", (map { "$_->[0]: $_->[1]" } @{ $request->{fields} }), '', $request->{body}];
});
my $dir = tempdir(CLEANUP => 1);
my $ua = LWP::UserAgent->new(agent => 'prog/1');
my $requests = $LWP::Protocol::haul::REQUESTS;

my $response = $ua->get($server->url('/echo'), 'X-A' => 'b', Accept => ['a/b', 'c/d']);
isa_ok($response, 'HTTP::Response');
is($LWP::Protocol::haul::REQUESTS, $requests + 1, 'request goes by haul');
ok($response->is_success, 'response is a success');
is($response->code . ' ' . $response->message . ' ' . $response->protocol, '200 OK HTTP/1.1', 'response has the status line');
like($response->content, qr/^User-Agent: prog\/1$/m, 'agent of LWP is sent');
is(() = $response->content =~ /^User-Agent/mig, 1, 'agent is sent once');
like($response->content, qr/^X-A: b$/m, 'field is sent');
like($response->content, qr/^Accept: a\/b\nAccept: c\/d$/m, 'repeated field is sent twice');
unlike($response->content, qr/^(?:Accept-Encoding|Cookie):/mi, 'haul adds no fields');
is($response->header('Client-Peer'), '127.0.0.1:' . $server->port, 'Client-Peer is set');
my $spelled = $ua->get($server->url('/spellings'));
is(join(' ', grep { /field/i } $spelled->header_field_names), 'X-Field', 'first spelling of a field counts, as in HTTP::Headers');
is(join(',', $spelled->header('x-field')), '1,2,3', 'values of a field with several spellings keep their order');
ok($response->header('Client-Date'), 'Client-Date is set');
is($response->request->uri, $server->url('/echo'), 'response has its request');

# C makes a request of the usual classes, Perl one of a subclass. Both send and return the same.
{
    package Other::Request;
    our @ISA = ('HTTP::Request');
}
my @requests = (
    [GET => '/echo'], [HEAD => '/echo'], [DELETE => '/echo'], [PUT => '/echo', [], 'put'], [POST => '/echo', [], 'post'], [POST => '/echo'],
    [GET => '/echo', [Referer => 'http://a/', 'X-B' => 'b', Accept => 'a/b', 'x_c' => 'c', Date => 'd', 'Content-Type' => 't', 'X-A-Long-Name-That-No-Cache-Has' => 1]],
    [GET => '/echo', ['X-Many' => 2, 'X-Many' => 1, Accept => ['b', 'a'], 'X-Empty' => '', 'X-Lines' => "a\r\n b", ':X_Colon' => 1]],
    [POST => '/echo', ['Content-Length' => 4, 'X-Number' => 7, 'X-Object' => URI->new('http://a/')], 'post'],
    [POST => '/echo', ['Content-Length' => 9], 'post'], [POST => '/echo', ['Content-Length' => 0]], [POST => '/echo', ['Content-Length' => 3], ''],
    [POST => '/echo', [], "\x{e9}"], [POST => '/echo', [], \'reference'], [GET => '/echo', ["X-\x{e9}" => "\x{e9}"]], [GET => '/echo', ['X-Wide' => "\x{263a}"]],
    [GET => '/echo', [Authorization => 'Basic a']], [GET => '/echo?a#b'], [get => '/echo'], ['bad method' => '/echo'],
    [GET => '/html'], [GET => '/chunked'], [GET => '/count'], [GET => '/none'], [GET => '/short'],
    [GET => '/echo', [map { ("X-$_" => $_) } 1 .. 30]],
);
my $by_perl = 0;
my $outgoing = \&LWP::Protocol::haul::_outgoing;
no warnings 'redefine';
local *LWP::Protocol::haul::_outgoing = sub { $by_perl++; goto &$outgoing };
for my $case (@requests) {
    my ($method, $path, @rest) = @$case;
    my @seen = map {
        my @warnings;
        local $SIG{__WARN__} = sub { push @warnings, $_[0] =~ /\A(.*?) at /s };
        my $response = $ua->request($_->new($method, $server->url($path), @rest));
        $response->remove_header('Client-Date');
        (my $text = join "\n", @warnings, $response->as_string) =~ s/^[0-9]+\.[0-9]+$/count/m;
        $text;
    } 'HTTP::Request', 'Other::Request';
    is($seen[0], $seen[1], "$method $path is the same in C and in Perl");
}
$by_perl = 0;
$ua->request(HTTP::Request->new(PUT => $server->url('/echo'), ['X-A' => 'b'], 'put'));
is($by_perl, 0, 'C makes a plain request');

$response = $ua->get($server->url('/count'));
is(join(',', $response->header('X-Many')), '1,2', 'repeated fields are kept');
my ($connection) = $response->content =~ /\A(\d+)\./;
like($ua->get($server->url('/count'))->content, qr/\A$connection\./, 'connection is kept');

# Features of LWP that haul does not replace.
require HTTP::Cookies;
$ua->cookie_jar(HTTP::Cookies->new);
push @{ $ua->requests_redirectable }, 'POST';
$response = $ua->post($server->url('/login'), { user => 'a b' });
is($response->previous->code, 302, 'LWP follows redirects');
like($response->content, qr/^Cookie: sid=1$/m, 'LWP sends its cookies');
like($response->previous->request->content, qr/\Auser=a[+%]/, 'form is sent');
is($ua->get($server->url('/basic'))->code, 401, '401 is returned');
$ua->credentials('127.0.0.1:' . $server->port, 'r', 'u', 'p');
is($ua->get($server->url('/basic'))->code, 200, 'credentials of LWP are used');
{
    require HTTP::Haul::Jar;
    my $own = LWP::UserAgent->new(cookie_jar => HTTP::Haul::Jar->new);
    $own->get($server->url('/login'));
    like($own->get($server->url('/echo'))->content, qr/^Cookie: sid=1$/m, 'HTTP::Haul::Jar works in LWP');
    # LWP before 6.47 adds the cookies again before it repeats a request.
    my $repeated = HTTP::Request->new(GET => $server->url('/echo'), [Cookie => 'lang=de; flag']);
    for my $sid (2, 3) {
        $own->cookie_jar->add($server->url('/login'), "sid=$sid");
        $own->cookie_jar->add_cookie_header($repeated);
    }
    is($repeated->header('Cookie'), 'lang=de; flag; sid=3', 'repeated request has each cookie once');
}

# Bodies.
for my $file ("$dir/file") {
    $response = $ua->get($server->url('/big'), ':content_file' => $file);
    is(-s $file, 300_000, ':content_file has the body');
    is($response->content, '', ':content_file leaves content empty');
}
my ($length, $calls) = (0, 0);
$response = $ua->get($server->url('/big'), ':content_cb' => sub { $length += length $_[0]; $calls++ }, ':read_size_hint' => 10_000);
is($length, 300_000, ':content_cb gets the body');
cmp_ok($calls, '>=', 30, ':read_size_hint limits the pieces');
$response = $ua->get($server->url('/big'), ':content_cb' => sub { die "enough\n" });
is($response->header('X-Died'), 'enough', 'callback that dies sets X-Died');
is($response->header('Client-Aborted'), 'die', 'callback that dies sets Client-Aborted');
{
    my $limited = LWP::UserAgent->new(max_size => 1000);
    my $response = $limited->get($server->url('/big'));
    is($response->header('Client-Aborted'), 'max_size', 'max_size sets Client-Aborted');
    cmp_ok(length $response->content, '<', 100_000, 'max_size limits the body');
}
is($ua->get($server->url('/html'))->title, 'Found', 'title of a page is parsed');
is($ua->get($server->url('/html'))->base, 'http://b.example/', 'base of a page is parsed');
{
    require HTML::HeadParser;
    my ($new, $parsed) = (HTML::HeadParser->can('new'), 0);
    no warnings qw(redefine once);
    local *HTML::HeadParser::new = sub { $parsed++; goto $new };
    my $told = sub {
        my $response = $ua->post($server->url('/page'), Content => $_[0]);
        $response->remove_header('Client-Date', 'Client-Peer', 'Client-Response-Num', 'Date');
        return join "\n", $response->headers->as_string, $response->content;
    };
    my @with = (
        '<TITLE>T</TITLE><body>', "<title\n>T</title>x", '<meta name=a content=b>x', '<Base href="http://b/">x', '<isindex>x',
        '<link href=a rel=b>x', "\xef\xbb\xbf<html><head><meta charset=c></head>",
    );
    for my $page (@with, 'text', '', '<p>x', '< title>x', "<html><head><script>a</script></head>x", "{\"a\":1}\n") {
        my $by_haul = $told->($page);
        LWP::Protocol::implementor(http => 'LWP::Protocol::http');
        require LWP::Protocol::http;
        is($by_haul, $told->($page), "what is told of the page $page");
        LWP::Protocol::implementor(http => 'LWP::Protocol::haul');
    }
    $parsed = 0;
    $told->($_) for @with;
    is($parsed, @with, 'pages with head elements are parsed');
    $told->($_) for '<p>x', 'text';
    is($parsed, @with, 'other pages are not parsed');
}
my $seen;
$ua->add_handler(response_header => sub { $seen = $_[0]->header('X-Many'); return });
$ua->get($server->url('/count'));
is($seen, '1, 2', 'response_header handler is called');
$ua->remove_handler('response_header');
is($ua->head($server->url('/big'))->header('Content-Length'), 300_000, 'HEAD has a Content-Length');
$response = $ua->get($server->url('/chunked'));
is($response->content, 'ok', 'chunked body is whole');
is($response->header('Client-Transfer-Encoding'), 'chunked', 'Client-Transfer-Encoding is set');
ok(!defined $response->header('Transfer-Encoding'), 'Transfer-Encoding is removed');
is($response->header('X-Trailer'), 't', 'trailers are fields');

# A server that prints its body and nothing else (HTTP/0.9): LWP assumes that it went well.
$response = $ua->get($server->url('/headless'));
is($response->status_line, '200 OK', 'response without head is 200');
is($response->content, "no head\n\nhere", 'response without head is the body');
{
    my $got = '';
    ok($ua->get($server->url('/headless'), ':content_cb' => sub { $got .= $_[0] })->is_success, 'response without head can be streamed');
    is($got, "no head\n\nhere", 'streamed body is whole');
}

# Request content.
my @give = ('abc', 'def');
my $request = HTTP::Request->new(PUT => $server->url('/echo'), ['Content-Type' => 'a/b'], sub { shift @give });
like($ua->request($request)->content, qr/^Transfer-Encoding: chunked\n.*\nabcdef\z/msi, 'content callback is sent in chunks');
@give = ('abc');
$request = HTTP::Request->new(PUT => $server->url('/echo'), ['Content-Length' => 3], sub { shift @give });
like($ua->request($request)->content, qr/^Content-Length: 3\n.*\nabc\z/msi, 'content callback may have a length');
$response = $ua->request(HTTP::Request::Common::POST($server->url('/echo'), Content_Type => 'form-data', Content => [a => 1]));
like($response->content, qr/name="a"\r\n\r\n1\r\n/, 'form-data is sent');

# HTTP/1.0.
$request = HTTP::Request->new(GET => $server->url('/version'));
$request->protocol('HTTP/1.0');
is($ua->request($request)->content, 'HTTP/1.0', 'HTTP/1.0 request is sent as such');
is($ua->get($server->url('/version'))->content, 'HTTP/1.1', 'default is HTTP/1.1');

# Failures.
$response = $ua->get('http://127.0.0.1:1/');
is($response->code, 500, 'refused connection is 500');
like($response->message, qr/\ACan't connect to 127\.0\.0\.1:1 \(.+\)/, 'message is that of LWP');
is($response->header('Client-Warning'), 'Internal response', 'Client-Warning is set');
$response = $ua->get($server->url('/short'));
is($response->content, 'short', 'truncated body has the received part');
ok($response->header('X-Died'), 'truncated body sets X-Died');
is($response->header('Client-Aborted'), 'die', 'truncated body sets Client-Aborted');
{
    my $quick = LWP::UserAgent->new(timeout => 1);
    my $start = time;
    my $response = $quick->get($server->url('/hang'));
    is($response->code, 500, 'timeout is 500');
    is($response->message, 'read timeout', 'message is that of LWP');
    like($response->content, qr/\Aread timeout\n\n\S/, 'content has the reason');
    cmp_ok(time - $start, '<', 20, 'timeout ends the wait');
}
for my $text ('http:///path') {
    my $requests = $LWP::Protocol::haul::REQUESTS;
    is($ua->get($text)->status_line, '500 No Host option provided', "$text has no host");
    is($LWP::Protocol::haul::REQUESTS, $requests, 'no request is made');
}
{
    my $said = sub { eval { LWP::Protocol::haul::_die(6, "could not resolve host: a.example$_[0]", URI->new('http://a.example/')) }; $@ };
    like($said->(': no such name'), qr/\ACan't connect to a\.example:80 \(Name or service not known\)\n/, 'unknown host has the message of LWP');
    like($said->(': Temporary failure in name resolution'), qr/\A[^\n]* \(Temporary failure in name resolution\)\n/, 'temporary resolver failure is named');
}
is($ua->request(HTTP::Request->new('A B' => $server->url('/')))->code, 400, 'invalid method is 400');

# Proxies.
{
    my $proxied = LWP::UserAgent->new;
    (my $proxy = $server->url('/')) =~ s{//}{//u:p@};
    $proxied->proxy(http => $proxy);
    is($proxied->get('http://proxied.example/x')->content, 'by proxy http://proxied.example/x Basic dTpw', 'proxy of LWP is used');
}

# The user of a URL.
(my $user = $server->url('/echo')) =~ s{//}{//u:p@};
like($ua->get($user)->content, qr/^Authorization: Basic dTpw$/m, 'user of the URL is sent');
done_testing;
