use strict;
use warnings;
use lib '.';
use Test::More;
use IO::Socket::INET;
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    return [404, {}, 'not here'] if $target eq '/404';
    return [200, {}, 'x' x 1_000_000] if $target eq '/big';
    if ($target eq '/slow') {
        return sub {
            t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for my $piece (qw(one two three)) {
                t::Server::write_all($_[0], sprintf "%x\r\n%s\r\n", length $piece, $piece);
                select undef, undef, undef, 0.05;
            }
            t::Server::write_all($_[0], "0\r\n\r\n");
        };
    }
    my $headers = $request->{headers};
    return [200, { 'X-Length' => defined $headers->{'content-length'} ? $headers->{'content-length'} : 'none',
        'X-Coding' => $headers->{'transfer-encoding'} || 'none', 'X-Type' => $headers->{'content-type'} || 'none',
        'X-Expect' => $headers->{expect} || 'none',
        'X-Trailers' => join ',', map { "$_=$request->{trailers}{$_}" } sort keys %{ $request->{trailers} } }, $request->{body}];
});
my $http = HTTP::Haul->new;

# The body, piece by piece.
my ($got, $seen) = ('');
my $response = $http->get($server->url('/big'), { data_callback => sub { $got .= $_[0]; $seen ||= { %{ $_[1] } } } });
is($got, 'x' x 1_000_000, 'data_callback gets the whole body');
is($response->{content}, '', 'response has no content');
ok($response->{success}, 'response is a success');
is("$seen->{status} $seen->{headers}{'content-length'} $seen->{protocol}", '200 1000000 HTTP/1.1', 'data_callback gets the response so far');
my @pieces;
$http->get($server->url('/slow'), { data_callback => sub { push @pieces, $_[0] } });
is(join('', @pieces), 'onetwothree', 'data_callback gets a chunked body');
cmp_ok(scalar @pieces, '>', 1, 'pieces come as they arrive');
my $called = 0;
$response = $http->get($server->url('/404'), { data_callback => sub { $called++ } });
is("$called $response->{content}", '0 not here', 'body of an error is content');

# Exceptions.
$response = $http->get($server->url('/big'), { data_callback => sub { die "enough\n" } });
is($response->{status}, 599, 'data_callback that dies is 599');
is($response->{content}, "enough\n", '599 has the message');
is($http->get($server->url('/x'))->{status}, 200, 'object works after that');
$response = $http->post($server->url('/x'), { content => sub { die { code => 7 } } });
is($response->{status}, 599, 'content callback that dies is 599');
my $mine_own = { status => 299, reason => 'Mine', success => 1 };
is($http->get($server->url('/big'), { data_callback => sub { die $mine_own } }), $mine_own, 'response that a callback dies of is returned');
{
    package False;
    use overload 'bool' => sub { 0 }, '""' => sub { 'false object' };
    package Boolless;
    use overload '""' => sub { 'object' }, 'eq' => sub { 1 }, 'bool' => sub { die "no boolean value\n" };
}
for my $class (qw(False Boolless)) {
    my $calls = 0;
    my $response = eval { $http->get($server->url('/big'), { data_callback => sub { $calls++; die bless {}, $class } }) };
    is($response && "$response->{status} $calls", '599 1', "exception of the class $class is 599");
}

# Objects whose text cannot be made.
{
    package Textless;
    use overload '""' => sub { die "no text\n" }, fallback => 1;
}
for my $options ({ headers => { A => bless [], 'Textless' } }, { headers => { A => [bless [], 'Textless'] } }, { content => bless [], 'Textless' },
    { headers => { 'Content-Length' => bless [], 'Textless' } }) {
    my $response = eval { $http->post($server->url('/x'), { content => 'abc', %$options }) };
    is($response && "$response->{status} $response->{content}", "599 no text\n", 'object whose text cannot be made is 599');
}
for my $request ([GET => bless [], 'Textless'], [(bless [], 'Textless'), $server->url('/x')]) {
    my $response = eval { $http->request(@$request) } || { status => 'none', content => $@ };
    is("$response->{status} $response->{content}", "599 no text\n", 'method or URL whose text cannot be made is 599');
    my @responses = eval { $http->batch([$request, $server->url('/x')]) };
    is(join(' ', map { $_->{status} } @responses), '599 200', 'method or URL whose text cannot be made is 599 in a batch');
}
my @seen;
eval { $http->each([bless([], 'Textless'), $server->url('/x')], sub { push @seen, "$_[2] $_[0]{status}" }) };
is(join(', ', sort @seen), '0 599, 1 200', 'URL whose text cannot be made is 599 in each');

$@ = 'mine';
$http->get($server->url('/x'), { data_callback => sub { eval { die 'inner' } } });
is($@, 'mine', '$@ is unchanged');
# Control flow that would leave the callback is stopped.
for my $round (1 .. 2) {
    $response = $http->get($server->url('/big'), { data_callback => sub { no warnings; last } });
    is($response->{status}, 599, 'last cannot leave a callback');
}

# Requests in callbacks, on the same object.
my @inner;
$response = $http->get($server->url('/big'), {
    data_callback => sub { push @inner, $http->get($server->url('/x'), { headers => { 'X-A' => 1 } })->{status} if @inner < 3 },
});
is($response->{status}, 200, 'outer request succeeds');
is("@inner", '200 200 200', 'requests in a callback succeed');
# A callback may free the object.
my $mine = HTTP::Haul->new;
$response = $mine->get($server->url('/big'), { data_callback => sub { undef $mine } });
is($response->{status}, 200, 'object may be destroyed during a request');
# A callback may free or change the arguments of the request.
my %options = (headers => { 'X-A' => 'v' x 100 }, content => 'c' x 5000);
my $url = $server->url('/slow') . ('#' x 2000);
$options{data_callback} = sub { %options = (); $url = 'y' x 3000; my @other = map { 'z' x 2000 } 1 .. 50; };
is($http->post($url, \%options)->{status}, 200, 'arguments may be destroyed during a request');

# The content, piece by piece.
my @give = ('a' x 10, 'b' x 100_000, 'c');
$response = $http->put($server->url('/x'), { content => sub { shift @give } });
is($response->{content}, 'a' x 10 . 'b' x 100_000 . 'c', 'content callback is sent whole');
is($response->{headers}{'x-coding'}, 'chunked', 'content callback is sent in chunks');
is($response->{headers}{'x-length'}, 'none', 'content callback has no Content-Length');
is($response->{headers}{'x-type'}, 'application/octet-stream', 'content callback has a Content-Type');
is($response->{headers}{'x-expect'}, 'none', 'content callback sends no Expect');
@give = ('abc', 'def', '');
$response = $http->put($server->url('/x'), { content => sub { shift @give }, headers => { 'Content-Length' => 6 } });
is("$response->{content} $response->{headers}{'x-length'} $response->{headers}{'x-coding'}", 'abcdef 6 none', 'content callback may have a Content-Length');
@give = ('abc');
$response = $http->put($server->url('/x'), { content => sub { shift @give }, headers => { 'Content-Length' => 6 } });
is($response->{status}, 599, 'content callback that ends early is 599');
@give = ("\x{263a}");
$response = $http->put($server->url('/x'), { content => sub { shift @give } });
like($response->{content}, qr/Wide character/, 'wide characters of a content callback are refused');
# Trailer fields.
@give = ('abc');
$response = $http->put($server->url('/x'), { content => sub { shift @give }, trailer_callback => sub { return { 'X-Sum' => 42, 'X-More' => [1, 2] } } });
is("$response->{content} $response->{headers}{'x-trailers'}", 'abc x-more=2,x-sum=42', 'trailer_callback sends trailers');
@give = ('abc');
$response = $http->put($server->url('/x'), { content => sub { shift @give }, trailer_callback => sub { die "no sum\n" } });
is("$response->{status} $response->{content}", "599 no sum\n", 'trailer_callback that dies is 599');
for my $bad (sub { 42 }, sub { return { 'X-Sum' => "\x{263a}" } }, sub { return { 'X-Sum' => "a\nb" } }, sub { return { 'Content-Length' => 1 } }) {
    @give = ('abc');
    is($http->put($server->url('/x'), { content => sub { shift @give }, trailer_callback => $bad })->{status}, 599, 'invalid trailers are 599');
}
for my $give ([qw(abc d)], ['ab', 'cd'], ['abcd'], [12345]) {
    @give = @$give;
    $response = $http->put($server->url('/x'), { content => sub { shift @give }, headers => { 'Content-Length' => 3 } });
    like($response->{content}, qr/\AContent-Length mismatch \(got: [45] expected: 3\)$/, "content that is too long: @$give");
}
@give = (12, 3);
is($http->put($server->url('/x'), { content => sub { shift @give }, headers => { 'Content-Length' => 3 } })->{content}, '123', 'content of the announced length is sent');
@give = qw(abc);
$response = $http->put($server->url('/x'), { content => sub { shift @give }, headers => { 'Content-Length' => 3 }, trailer_callback => sub { die } });
is("$response->{content} $response->{headers}{'x-trailers'}", 'abc ', 'trailer_callback is not called with a Content-Length');
{
    package Broken;
    use overload '""' => sub { die "no text\n" };
}
$response = $http->put($server->url('/x'), { content => sub { bless [], 'Broken' } });
is("$response->{status} $response->{content}", "599 no text\n", 'content object that cannot be text is 599');

# The option peer.
(my $elsewhere = $server->url('/x')) =~ s/127\.0\.0\.1/host.invalid/;
is($http->get($elsewhere)->{status}, 599, 'unknown host is 599');
is($http->get($elsewhere, { peer => '127.0.0.1' })->{status}, 200, 'peer replaces the host');
my $asked;
is($http->get($elsewhere, { peer => sub { $asked = shift; '127.0.0.1' } })->{status}, 200, 'peer may be a code reference');
is($asked, 'host.invalid', 'peer code gets the host');

for my $bad ('127.0.0.1:' . ($server->port + 65536), '127.0.0.1:99999999999999999999', "127.0.0.1\0.invalid:" . $server->port) {
    is($http->get($elsewhere, { peer => $bad })->{status}, 599, 'peer with a port above 65535 or a NUL is 599');
}

# Code is asked for each host.
my %named;
my $second = t::Server->start(sub { return [200, {}, "second for $_[0]{headers}{host}"] });
my $first = t::Server->start(sub {
    my ($request) = @_;
    return [302, { Location => 'http://b.invalid/' }, ''] if $request->{target} eq '/b';
    return [200, {}, "first for $request->{headers}{host}"];
});
%named = ('a.invalid' => '127.0.0.1:' . $first->port, 'b.invalid' => '127.0.0.1:' . $second->port);
my @asked;
my %by_name = (peer => sub { push @asked, $_[0]; return $named{ $_[0] } });
$response = $http->get('http://a.invalid/b', {%by_name});
is($response->{content}, 'second for b.invalid', 'request after a redirect goes to the peer of its host');
is("@asked", 'a.invalid b.invalid', 'peer code is asked for each host of a redirect');
is($http->get($first->url('/'), {%by_name})->{content}, 'first for 127.0.0.1:' . $first->port, 'peer code that returns undef leaves the host');

# A peer is that of its request only.
my @nested;
my $inner = sub { push @nested, $http->get($second->url('/'))->{content} };
my %to_first = (peer => '127.0.0.1:' . $first->port);
$http->get('http://a.invalid/', { %to_first, data_callback => $inner });
my $pieces = 0;
$http->put('http://a.invalid/', { %to_first, content => sub { return $pieces++ ? '' : $inner->() } });
$http->get('http://a.invalid/', { %to_first, on_step => sub { $inner->() if $_[0] eq 'sent' } });
$http->get($second->url('/'), { peer => sub { $inner->(); return '127.0.0.1:' . $first->port } });
is_deeply(\@nested, [('second for 127.0.0.1:' . $second->port) x 4], 'request of a callback does not go to the peer');

# A final response ends the sending of endless content.
{
    my $listener = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "cannot listen: $@";
    my $pid = fork;
    die "cannot fork: $!" unless defined $pid;
    if (!$pid) {
        alarm 60;
        my $socket = $listener->accept;
        while (defined(my $line = <$socket>)) { last if $line eq "\r\n" }
        t::Server::write_all($socket, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        1 while sysread $socket, my $rest, 65536;
        require POSIX;
        POSIX::_exit(0);
    }
    local $SIG{ALRM} = sub { die "nobody looked for the answer\n" };
    alarm 30;
    my $slowly = sub { select undef, undef, undef, 0.02; return 'a piece' };
    my $response = $http->put('http://127.0.0.1:' . $listener->sockport . '/', { content => $slowly });
    alarm 0;
    is("$response->{status} $response->{content}", '401 no', 'early response ends a slow content callback');
    kill TERM => $pid;
    waitpid $pid, 0;
}

$response = eval { $http->get(bless [], 'Textless') };
is($response && "$response->{status} $response->{content}", "599 no text\n", 'URL whose text cannot be made is 599');

# A length that is an object, such as a number under `use bigint`.
{
    package Number;
    use overload '""' => sub { ${ $_[0] } }, '0+' => sub { ${ $_[0] } }, fallback => 1;
}
{
    my @content = ('abc', '');
    my $length = bless \(my $three = 3), 'Number';
    my $response = $http->post($server->url('/x'), { headers => { 'Content-Length' => $length }, content => sub { shift @content } });
    is("$response->{headers}{'x-length'} $response->{headers}{'x-coding'}", '3 none', 'length may be an object');
}

# exit in a callback ends the program.
my $code = system($^X, (map { "-I$_" } @INC), '-e', <<'END', $server->url('/big'));
use HTTP::Haul;
my $http = HTTP::Haul->new;
$http->get($ARGV[0], { data_callback => sub { exit 7 } });
exit 1;
END
is($code >> 8, 7, 'exit in a callback ends the program');
done_testing;
