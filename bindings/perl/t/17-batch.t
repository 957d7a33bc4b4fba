use strict;
use warnings;
use lib '.';
use Test::More;
use Time::HiRes qw(time);
use t::Server;
use HTTP::Haul;
use HTTP::Haul::Jar;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    return [302, { Location => "/page/$1" }, ''] if $target =~ m{\A/go/(\d+)};
    return [200, { 'Set-Cookie' => "c$1=1; Path=/" }, ''] if $target =~ m{\A/set/(\d+)};
    return [200, {}, $request->{headers}{cookie} || 'none'] if $target eq '/cookie';
    return sub { 1 } if $target eq '/hang';
    return [200, {}, $target] if $target =~ m{\A/target};
    return [200, {}, $request->{head}] if $target eq '/head';
    return [200, { 'X-Connection' => $request->{connection} }, "$request->{method} $1 $request->{body}"] if $target =~ m{\A/page/(\d+)};
    return [404, {}, 'no'];
});
my $http = HTTP::Haul->new;
my @urls = map { $server->url("/page/$_") } 1 .. 200;

my @responses = $http->batch(\@urls);
is(scalar @responses, 200, 'batch returns all responses');
is_deeply([map { $_->{content} } @responses], [map { "GET $_ " } 1 .. 200], 'batch returns responses in input order');
is($responses[6]{url}, $urls[6], 'response has its URL');
my %connections = map { $_->{headers}{'x-connection'} => 1 } @responses;
cmp_ok(scalar keys %connections, '<=', 50, 'batch opens at most fifty connections to a host');
is(scalar @{ $http->batch([@urls[0 .. 4]]) }, 5, 'batch returns an array reference in scalar context');

# Requests from a code reference.
my ($next, %seen) = (0);
my $count = $http->each(sub { $next < 500 ? $server->url('/page/' . ++$next) : () }, sub {
    my ($response, $request, $index) = @_;
    $seen{$index}++ if $response->{content} eq 'GET ' . ($index + 1) . ' ' && $request eq $server->url('/page/' . ($index + 1));
});
is($count, 500, 'each returns the number of requests');
is(scalar keys %seen, 500, 'each calls the code once for each request');
my @order;
$http->each(\@urls, sub { push @order, $_[2] }, { order => 'input', parallel => 10 });
is_deeply(\@order, [0 .. 199], 'each calls the code in input order');

# Rates delay the starts.
for my $name (qw(rate rate_host)) {
    my $began = time;
    is(scalar(my @paced = $http->batch([@urls[0 .. 4]], { $name => 20 })), 5, "$name returns all responses");
    cmp_ok(time - $began, '>=', 0.199, "$name delays the starts");
}
my $stalled = ($http->batch([$server->url('/hang')], { stall_time => 0.3, limit_rate => 1 << 20 }))[0];
is($stalled->{status}, 599, 'silent server is a stall');
ok(!eval { $http->batch(\@urls, { rate => -1 }); 1 }, 'negative rate is refused');

# Kinds of requests.
@responses = $http->batch([
    $urls[0],
    ['POST', $urls[1], { content => 'body' }],
    { method => 'PUT', url => $urls[2], content => 'put', headers => { 'X-A' => [1, 2] } },
    $server->url('/go/9'),
    ['POST', $server->url('/go/9')],
    'http://127.0.0.1:1/',
    'no url',
    [GET => $urls[0], { headers => { Host => 'x' } }],
    ['POST', $urls[1], { content => "\x{263a}" }],
    $server->url('/none'),
], { order => 'input' });
is_deeply([map { "$_->{status}" } @responses], [qw(200 200 200 200 302 599 599 599 599 404)], 'batch accepts all kinds of requests');
is_deeply([map { $_->{content} } @responses[0 .. 3]], ['GET 1 ', 'POST 2 body', 'PUT 3 put', 'GET 9 '], 'responses have their contents');
is($responses[6]{content}, "Cannot parse URL: 'no url'\n", 'URL without scheme is refused');
is("$responses[3]{url} $responses[3]{redirects}[0]{status}", $server->url('/page/9') . ' 302', 'batch follows redirects');
like($responses[5]{content}, qr/Could not connect/, 'failure has a message');
like($responses[8]{content}, qr/Wide character/, 'failure has a message');
is($responses[5]{url}, 'http://127.0.0.1:1/', 'failure has its URL');

# A URL alone takes a shorter way than an array with the same URL.
my @alone = ($urls[0], $server->url('/go/9'), $server->url('/none'), 'http://127.0.0.1:1/', 'no url', "http://a/\0", $server->url("/page/7?\x{e9}"));
for my $most (0, 5) {
    my $client = HTTP::Haul->new(max_redirect => $most);
    for my $order (qw(input completion)) {
        my @responses = map { [$client->batch($_, { order => $order })] } \@alone, [map { [GET => $_] } @alone];
        delete $_->{headers}{'x-connection'} for map { @$_ } @responses;
        is_deeply($responses[0], $responses[1], "URL alone has the same response (order $order, at most $most redirects)");
    }
}

# The same URLs and failures as in a single request. Perl's encoding of a string makes no difference.
my $wide = $server->url("/page/1?\x{263a}");
my $flagged = $server->url("/page/1?\x{e9}");
utf8::upgrade($flagged);
for my $url ($server->url("/target?\xc3\xbc"), $server->url("/target?\xfc"), $server->url('/target?a b'), $wide, $flagged,
    'http://', 'http://a:99999/', 'http://[1', "http://a\x{7f}b/", 'ftp://a/') {
    my $outline = sub { my ($response) = @_; return [@$response{qw(status url content)}, ($response->{error} || {})->{code}] };
    my $alone = $outline->($http->get($url));
    my ($listed, $hashed) = $http->batch([$url, { url => $url, headers => { 'X-A' => 1 } }]);
    (my $name = $url) =~ s/([^!-~])/sprintf '\\x{%x}', ord $1/ge;
    is_deeply($outline->($listed), $alone, "URL alone in a batch is treated as by get: $name");
    is_deeply($outline->($hashed), $alone, "URL with options in a batch is treated as by get: $name");
}
for my $headers ({ 'X A' => 1 }, { 'X-A' => "a\rb" }) {
    my ($alone, $batched) = ($http->get($urls[0], { headers => $headers }), $http->batch([[GET => $urls[0], { headers => $headers }]]));
    is_deeply([@$batched{qw(status content)}, $batched->{error}{code}], [@$alone{qw(status content)}, $alone->{error}{code}], 'field that is not valid has the same failure in a batch');
}

# Options of one request.
my @timed = $http->batch([$urls[0], map({ [GET => $urls[1], { timings => $_ }] } 0, 1), [GET => $server->url('/go/3'), { timings => 1 }]]);
is(join(' ', map { $_->{timings} && $_->{timings}{total} && $_->{connection}{port} ? 1 : 0 } @timed), '0 0 1 1', 'request of a batch has its own timings');
ok($timed[3]{redirects}[0]{timings}, 'redirect has timings, too');

for my $case ([{ 'User-Agent' => '' }], [{ 'user-agent' => 0 }], [{ 'User-Agent' => 'x' }], [{ Connection => 'X-A' }, 0], [{ Connection => 'X-A' }, 1],
    [{ 'Content-Type' => undef }]) {
    my ($headers, $keep_alive) = @$case;
    my $client = HTTP::Haul->new(defined $keep_alive ? (keep_alive => $keep_alive) : ());
    my %options = (headers => $headers, content => 'x');
    my $outline = sub { join "\n", sort grep { !/\AHost:/i } split /\r\n/, $_[0]{content} };
    my ($batched) = $client->batch([[PUT => $server->url('/head'), {%options}]]);
    is($outline->($batched), $outline->($client->put($server->url('/head'), {%options})), "batch sends the fields of a single request: @{[%$headers ? keys %$headers : ()]}");
}

# Cookies.
my $jar = HTTP::Haul::Jar->new;
HTTP::Haul->new(cookie_jar => $jar)->batch([map { $server->url("/set/$_") } 1 .. 5]);
is($jar->count, 5, 'batch stores cookies in the jar');
like((HTTP::Haul->new(cookie_jar => $jar)->batch([$server->url('/cookie')]))[0]{content}, qr/c1=1/, 'batch sends cookies of the jar');
SKIP: {
    eval { require HTTP::CookieJar } or skip 'HTTP::CookieJar is not installed', 1;
    my $theirs = HTTP::CookieJar->new;
    my $with = HTTP::Haul->new(cookie_jar => $theirs);
    $with->batch([$server->url('/set/1')]);
    is(($with->batch([$server->url('/cookie')]))[0]{content}, 'c1=1', 'batch uses HTTP::CookieJar');
}

# A callback that dies ends the batch.
my $calls = 0;
ok(!eval { $http->each(\@urls, sub { die "enough\n" if ++$calls == 3 }); 1 }, 'code that dies ends each');
is("$@$calls", "enough\n3", 'each ends at once');
is(scalar @{ $http->batch([@urls[0 .. 2]]) }, 3, 'object works after that');
# Requests in a callback.
my $inner = 0;
$http->each([@urls[0 .. 9]], sub { $inner++ if $http->get($urls[20])->{content} eq 'GET 21 ' });
is($inner, 10, 'code of each may make requests');
# Time limits and signals.
my $start = time;
@responses = HTTP::Haul->new(timeout => 0.5)->batch([$server->url('/hang'), $urls[0]]);
is("$responses[0]{status} $responses[1]{status}", '599 200', 'timeout applies to each request');
{
    local $SIG{ALRM} = sub { die "alarm\n" };
    alarm 1;
    ok(!eval { $http->batch([$server->url('/hang')]); 1 }, 'signal handler that dies ends batch');
    alarm 0;
    is($@, "alarm\n", 'message is that of the handler');
}
cmp_ok(time - $start, '<', 30, 'timeout and signal end the wait');

# Options and requests that are undefined.
{
    my @warnings;
    local $SIG{__WARN__} = sub { push @warnings, @_ };
    my %undefined = map { $_ => undef } qw(parallel per_host order memory retries rate rate_host limit_rate stall_time);
    @responses = $http->batch([@urls[0 .. 3]], \%undefined);
    is_deeply([map { $_->{status} } @responses], [(200) x 4], 'undefined options are the defaults');
    is("@warnings", '', 'undefined options give no warning');
}
{
    my $calls = 0;
    ok(!eval { $http->each([$urls[0], undef, $urls[1]], sub { $calls++ }); 1 }, 'undef in a list of requests dies');
    like($@, qr/must not be undef/, 'message names undef');
    is($calls, 0, 'no request of that list is sent');
}
ok(!eval { $http->batch(\@urls, { parallel => 0.5 }); 1 }, 'parallel below 1 dies');

# The same request alone and in a batch.
for my $request (['GET', $server->url('/head'), { content => '' }], ['', $server->url('/head')], ['GET', 'http:///127.0.0.1:1/']) {
    my $alone = $http->request(@$request);
    my ($response) = $http->batch([$request]);
    is($response->{status}, $alone->{status}, 'status is the same in a batch');
    is($response->{content}, $alone->{content}, 'content is the same in a batch') if $request->[0];
}

for my $bad ([undef], [[undef, undef]], [{}], [[GET => $urls[0], { data_callback => sub { } }]], [[PUT => $urls[0], { content => sub { } }]]) {
    ok(!eval { $http->batch($bad); 1 }, 'unsupported request dies');
}
ok(!eval { $http->batch(\@urls, { order => 'x' }); 1 }, 'unknown order dies');
ok(!eval { $http->batch(\@urls, { paralel => 1 }); 1 }, 'unknown option dies');
ok(!eval { $http->batch('x'); 1 }, 'requests that are no array die');
done_testing;
