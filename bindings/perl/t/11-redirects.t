use strict;
use warnings;
use lib '.';
use Test::More;
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

my $other = t::Server->start(sub {
    my ($request) = @_;
    return [302, { Location => $1 }, ''] if $request->{target} =~ m{\A/back/(.*)};
    return [200, {}, $request->{head}];
});
my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    return [$1, { Location => $2, 'Set-Cookie' => 'hop=1' }, 'moved'] if $target =~ m{\A/(30\d)/(.*)};
    return [302, {}, 'nowhere'] if $target eq '/none';
    return [200, {}, "$request->{head}\n\n$request->{body}"];
});
my $http = HTTP::Haul->new;

my $response = $http->get($server->url('/302//there'));
ok($response->{success}, 'redirect is followed');
is($response->{url}, $server->url('/there'), 'url is the last one');
is(scalar @{ $response->{redirects} }, 1, 'redirects has one response');
my $hop = $response->{redirects}[0];
is("$hop->{status} $hop->{url} $hop->{content}", '302 ' . $server->url('/302//there') . ' moved', 'redirect is a whole response');
ok(!$hop->{success}, 'redirect is no success');

my @chain = ('/there', '/there?q', 'http://127.0.0.1:' . $server->port . '/there', '//127.0.0.1:' . $server->port . '/there');
is($http->get($server->url("/302/$_"))->{status}, 200, "Location: $_") for @chain;

for my $status (301, 302, 303, 307, 308) {
    is($http->get($server->url("/$status//x"))->{status}, 200, "GET: $status is followed");
    is($http->head($server->url("/$status//x"))->{status}, 200, "HEAD: $status is followed");
    my $response = $http->post($server->url("/$status//x"), { content => 'body', headers => { 'Content-Type' => 'text/x' } });
    is($response->{status}, $status == 303 ? 200 : $status, "POST: $status is " . ($status == 303 ? '' : 'not ') . 'followed');
    next unless $status == 303;
    like($response->{content}, qr{\AGET /x }, '303 is followed by GET');
    unlike($response->{content}, qr/text\/x|Content-Length|body/i, '303 drops the content and its headers');
}
is($http->request(PUT => $server->url("/$_//x"), { content => 'body' })->{status}, $_, "PUT: $_ is the answer, and no success") for 301, 302;
{
    my @once = ('once');
    my $response = $http->request(GET => $server->url('/307//x'), { content => sub { shift @once } });
    is($response->{status}, 599, '307 with a content callback is 599');
    like($response->{content}, qr/\Athe content callback was called to its end already/, 'content callback is not called again');
}
{
    my $beyond = t::Server->start(sub {
        my ($request) = @_;
        return [302, { Location => "/caf\xe9" }, ''] if $request->{target} eq '/latin1';
        return [302, { Location => "/caf\xc3\xa9" }, ''] if $request->{target} eq '/utf8';
        return [200, {}, $request->{target}];
    });
    for my $case (['/latin1', '/caf%E9'], ['/utf8', '/caf%C3%A9']) {
        my ($path, $target) = @$case;
        is($http->get($beyond->url($path))->{content}, $target, "Location: $target");
        is(($http->batch([$beyond->url($path)]))[0]{content}, $target, 'batch follows the same Location');
        is($http->request(GET => $beyond->url($path), { peer => '127.0.0.1:' . $beyond->port })->{content}, $target, 'request with peer follows the same Location');
    }
}
is($http->get($server->url('/none'))->{content}, 'nowhere', '302 without Location is no redirect');
is($http->get($server->url('/304//x'))->{status}, 304, '304 is no redirect');

my $loop = HTTP::Haul->new(max_redirect => 3);
$response = $loop->get($server->url('/302//302//302//302//302//x'));
is($response->{status}, 302, 'redirect after max_redirect is returned');
is(scalar @{ $response->{redirects} }, 3, 'max_redirect redirects are followed');
is(HTTP::Haul->new(max_redirect => 0)->get($server->url('/302//x'))->{status}, 302, 'max_redirect => 0 follows none');

# Secrets stay with their origin.
my $secrets = { headers => { Authorization => 'Basic c2VjcmV0', Cookie => 'sid=secret', 'X-Api-Key' => 'secret', 'X-Plain' => 'kept' } };
like($http->get($server->url('/302//x'), $secrets)->{content}, qr/^Authorization: Basic.*^Cookie: sid|^Cookie: sid.*^Authorization: Basic/msi, 'secrets are sent to the same origin');
my $away = $other->url('/x');
my $seen = $http->get($server->url("/302/$away"), $secrets)->{content};
unlike($seen, qr/secret|c2VjcmV0/, 'secrets are not sent to another origin');
like($seen, qr/^X-Plain: kept/m, 'plain field is sent to another origin');
$seen = $http->get($server->url('/302/' . $other->url('/back/' . $server->url('/x'))), $secrets)->{content};
unlike($seen, qr/secret|c2VjcmV0/, 'secrets are not restored back at the origin');
my $default = HTTP::Haul->new(default_headers => { authorization => 'Bearer c2VjcmV0' });
unlike($default->get($server->url("/302/$away"))->{content}, qr/c2VjcmV0/, 'secret of default_headers stays with the origin');
(my $user = $server->url('/302//x')) =~ s{//}{//u:p@};
unlike($http->get($user)->{content}, qr/^Authorization/mi, 'user of the URL is not sent after a redirect');
($user = $server->url("/302/$away")) =~ s{//}{//u:p@};
unlike($http->get($user)->{content}, qr/^Authorization/mi, 'user of the URL is not sent to another origin');
is_deeply([sort keys %{ $secrets->{headers} }], ['Authorization', 'Cookie', 'X-Api-Key', 'X-Plain'], 'headers of the caller are unchanged');

is($http->get($server->url('/302/ftp://127.0.0.1/'))->{status}, 599, 'redirect to another scheme is 599');
$response = $http->get($server->url('/302/http://127.0.0.1:1/'));
is($response->{status}, 599, 'redirect to a closed port is 599');
is(scalar @{ $response->{redirects} }, 1, '599 has the redirect');

# A batch follows redirects like a single request, alone or with options, in both orders.
(my $same_origin = $server->url('/302//x')) =~ s{//}{//u:p@};
my $there_and_back = $server->url('/302/' . $other->url('/back/' . $server->url('/x')));
for my $case (
    ['user of the URL', $http, $same_origin], ['secrets', $http, $server->url('/302//x'), $secrets],
    ['secrets there and back', $http, $there_and_back, $secrets], ['default secrets there and back', $default, $there_and_back],
    ['too many redirects', $loop, $server->url('/302//302//302//302//302//x')], ['300', $http, $server->url('/300//x')],
    ['another scheme', $http, $server->url('/302/ftp://127.0.0.1/')], ['a closed port', $http, $server->url('/302/http://127.0.0.1:1/')],
) {
    my ($name, $client, $url, $options) = @$case;
    my $outline = sub {
        my ($response) = @_;
        my %error = %{ $response->{error} || {} };
        # The fields of a hash have no order.
        my $content = join "\n", sort split /\r?\n/, $response->{content};
        return join "\n", @$response{qw(status url)}, $content, %error ? "error $error{code}" : (),
            map { "$_->{status} $_->{url} $_->{content}" } @{ $response->{redirects} || [] };
    };
    my $alone = $outline->($client->get($url, $options || {}));
    for my $order (qw(input completion)) {
        my @requests = ($server->url('/first'), [GET => $url, $options], $options ? () : $url, $server->url('/last'));
        my @contents = $client->batch(\@requests, { order => $order });
        is($outline->($_), $alone, "batch in $order order follows redirects like get: $name") for @contents[1 .. $#contents - 1];
        my @order;
        $client->each(\@requests, sub { push @order, $_[2] }, { order => $order });
        is_deeply($order eq 'input' ? \@order : [sort @order], [0 .. $#requests], "each calls the code in $order order: $name");
    }
}

# The data callback sees the last reply only.
my $got = '';
$response = $http->get($server->url('/302//x'), { data_callback => sub { $got .= $_[0] } });
like($got, qr{\AGET /x }, 'data_callback gets the last body');
unlike($got, qr/moved/, 'data_callback does not get the body of a redirect');

for my $case (
    ['http://h/a/b?q', 'c', 'http://h/a/c'], ['http://h/a/b?q', '/c', 'http://h/c'], ['http://h/a/b?q', '?x', 'http://h/a/b?x'],
    ['http://h/a/b?q#f', '#g', 'http://h/a/b?q#g'], ['http://h', 'c', 'http://h/c'], ['http://h/a', '//o/p', 'http://o/p'],
    ['https://h/a', '//o/p', 'https://o/p'], ['http://h/a', 'HTTPS://x', 'HTTPS://x'], ['http://h/a', ' /b ', 'http://h/b'],
) {
    is(HTTP::Haul::_join(@$case[0, 1]), $case->[2], "$case->[0] and $case->[1]");
}
done_testing;
