use strict;
use warnings;
use lib '.';
use Test::More;
use Time::HiRes qw(time);
use t::Server;
use HTTP::Haul;
use HTTP::Haul::Retry;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

# /NAME/STATUS/N answers N times with that status, then with 200. The body is the number of tries.
my %tries;
my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    my $try = ++$tries{$target};
    return [200, {}, $tries{$1} || 0] if $target =~ m{\A/count(/.*)};
    if ($target =~ m{\A/([^/]+)/([a-z0-9]+)/([0-9]+)(?:/after=(.*))?\z} && $try <= $3) {
        my ($name, $what, $after) = ($1, $2, $4);
        return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"); 0 } if $what eq 'half';
        return sub { 0 } if $what eq 'close';
        return [303, { Location => "/see-$name/503/1" }, ''] if $what eq 'see';
        return [$what, defined $after ? { 'Retry-After' => $after } : {}, 'not yet'];
    }
    return [200, {}, "$try $request->{method} $request->{body}"];
});
my %quick = (backoff => 0.001);
my $tries_of = sub { HTTP::Haul->new->get($server->url("/count$_[0]"))->{content} };

# Off unless asked for.
is(HTTP::Haul->new->get($server->url('/off/503/1'))->{status}, 503, 'no retries by default');
is($tries_of->('/off/503/1'), 1, 'request is sent once by default');
my $http = HTTP::Haul->new(retries => {%quick});
is($http->get($server->url('/default/503/3'))->{content}, '4 GET ', 'status is retried three times');
is($http->get($server->url('/default/503/4'))->{status}, 503, 'last response is returned');
is($tries_of->('/default/503/4'), 4, 'retries end after the total');
is($http->get($server->url('/default/404/1'))->{status}, 404, 'other status is no failure');
is($http->get($server->url('/default/close/2'))->{content}, '3 GET ', 'closed connection is retried');
is($http->get($server->url('/default/half/2'))->{content}, '3 GET ', 'broken body is retried');
is($http->get($server->url('/one/503/2'), { retries => { %quick, total => 1 } })->{status}, 503, 'request has its own retries');
is($http->get($server->url('/none/503/1'), { retries => 0 })->{status}, 503, '0 turns retries off');
is($http->get($server->url('/number/503/1'), { retries => HTTP::Haul::Retry->new(%quick, total => 1) })->{status}, 200, 'retries may be an object');
is($http->get($server->url('/status/503/2'), { retries => { %quick, status => 1 } })->{status}, 503, 'status limits retries after a status');
is($http->get($server->url('/read/close/2'), { retries => { %quick, read => 0 } })->{status}, 599, 'read limits retries after a failure');
is($http->get($server->url('/list/418/1'), { retries => { %quick, status_forcelist => [418] } })->{status}, 200, 'status_forcelist replaces the statuses');

# Methods and bodies.
is($http->put($server->url('/put/503/1'), { content => 'body' })->{content}, '2 PUT body', 'PUT sends its body again');
is($http->post($server->url('/post/503/1'), { content => 'body' })->{status}, 503, 'POST is not repeated');
is($http->post($server->url('/allowed/503/1'), { content => 'body', retries => { %quick, allowed_methods => ['post'] } })->{content}, '2 POST body', 'allowed method is repeated');
is($http->post($server->url('/all/503/1'), { content => 'body', retries => { %quick, allowed_methods => undef } })->{status}, 200, 'undef allows all methods');
my @give = qw(one two);
is($http->put($server->url('/callback/503/1'), { content => sub { shift @give } })->{status}, 503, 'content of a callback is not sent again');
is($tries_of->('/callback/503/1'), 1, 'request with a callback is sent once');
my $got = '';
is($http->get($server->url('/data/half/1'), { data_callback => sub { $got .= $_[0] } })->{status}, 599, 'delivered data is not delivered again');
is($got, 'half', 'data arrives once');
is($http->get($server->url('/data/503/1'), { data_callback => sub { $got .= $_[0] } })->{status}, 200, 'reply without delivered data is retried');
is($http->post($server->url('/post/see/1'), { content => 'x' })->{content}, '2 GET ', 'request after a redirect is retried');
is($tries_of->('/post/see/1'), 1, 'request before the redirect is sent once');

# Failures.
my $response = HTTP::Haul->new->get('http://127.0.0.1:1/');
is("$response->{status} $response->{error}{connect} $response->{error}{transient} $response->{error}{code}", '599 1 1 7', 'failure has its kind');
my @waits;
$http->post('http://127.0.0.1:1/', { content => 'x', on_step => sub { push @waits, $_[1]{wait} if $_[0] eq 'retry' } });
is(scalar @waits, 3, 'request that was not sent is sent again');
@waits = ();
$http->post('http://127.0.0.1:1/', { content => sub { }, retries => { %quick, connect => 1 }, on_step => sub { push @waits, $_[1]{wait} if $_[0] eq 'retry' } });
cmp_ok(scalar @waits, '<=', 1, 'connect limits retries after a failure to connect');
is($http->get('no url')->{status}, 599, 'URL that is not valid is not retried');

# Waits.
my $state = HTTP::Haul::Retry->new(backoff => 1, jitter => 0, total => 9, max_backoff => 5)->state({});
my $busy = { status => 503, protocol => 'HTTP/1.1', url => 'http://a/', headers => {} };
is(join(' ', map { $state->after($busy, 'GET') } 1 .. 5), '1 2 4 5 5', 'wait doubles up to max_backoff');
$state = HTTP::Haul::Retry->new(backoff => 1, jitter => 0.5, total => 1)->state({});
my $wait = $state->after($busy, 'GET');
ok($wait > 0.5 && $wait <= 1, 'jitter shortens the wait');
my $asked = sub {
    my ($value, %rules) = @_;
    return HTTP::Haul::Retry->new(%quick, %rules)->state({})->after({ %$busy, headers => { 'retry-after' => $value } }, 'GET');
};
is($asked->('7'), 7, 'Retry-After is a number of seconds');
cmp_ok($asked->('Fri, 31 Dec 2100 23:59:59 GMT', max_retry_after => 1e12), '>', 1e6, 'Retry-After is a date');
cmp_ok($asked->('Fri, 31 Dec 1999 23:59:59 GMT'), '<=', 0.001, 'Retry-After in the past is no wait');
cmp_ok($asked->('soon'), '<=', 0.001, 'Retry-After that is not valid is ignored');
is($asked->('9' x 400), undef, 'long Retry-After is too long');
is($asked->('3601'), undef, 'Retry-After beyond max_retry_after ends the retries');
cmp_ok($asked->('7', respect_retry_after => 0), '<=', 0.001, 'respect_retry_after turns Retry-After off');
for my $bad ({ totl => 1 }, { total => -1 }, { total => 'x' }, { jitter => 2 }, { backoff => undef }, { status_forcelist => 503 }, 'x', [], -1) {
    ok(!eval { HTTP::Haul->new(retries => $bad); 1 }, 'retries that are not valid die');
}

# A host is left alone.
my $began = time;
is($http->get($server->url('/held/429/1/after=1'))->{content}, '2 GET ', '429 is retried');
cmp_ok(time - $began, '>=', 0.99, 'retry waits for Retry-After');
my $held = HTTP::Haul->new(retries => { %quick, total => 0 });
$began = time;
is($held->get($server->url('/alone/503/1/after=1'))->{status}, 503, 'no retry is left');
is($held->get($server->url('/other/503/0'))->{status}, 200, 'other request is sent');
cmp_ok(time - $began, '>=', 0.99, 'other request to the host waits, too');

# each and batch.
my @urls = map { $server->url("/each$_/503/2") } 1 .. 30;
my %seen;
is($http->each(\@urls, sub { $seen{ $_[1] } = "$_[0]{status} $_[0]{content}" }), 30, 'each counts a request once');
is_deeply(\%seen, { map { $_ => '200 3 GET ' } @urls }, 'each retries each request');
my @order;
$http->each([map { $server->url("/order$_/503/" . $_ % 3) } 1 .. 30], sub { push @order, "$_[2] $_[0]{status}" }, { order => 'input' });
is_deeply(\@order, [map { "$_ 200" } 0 .. 29], 'each keeps the input order');
@order = ();
my @mixed = map { my $url = $server->url("/mixed$_/503/" . $_ % 2); $_ % 2 ? [GET => $url, { retries => {%quick} }] : $url } 1 .. 30;
HTTP::Haul->new->each(\@mixed, sub { push @order, "$_[2] $_[0]{status}" }, { order => 'input', parallel => 4 });
is_deeply(\@order, [map { "$_ 200" } 0 .. 29], 'request has its own retries in input order');
my @responses = HTTP::Haul->new->batch([$server->url('/option/503/1'), $server->url('/option/close/1'), 'http://127.0.0.1:1/'], { retries => {%quick} });
is_deeply([map { $_->{status} } @responses], [200, 200, 599], 'batch has an option retries');
@responses = HTTP::Haul->new->batch([[GET => $server->url('/single/503/1'), { retries => {%quick} }], $server->url('/several/503/1')]);
is_deeply([map { $_->{status} } @responses], [200, 503], 'request of a batch has its own retries');
@responses = $http->batch([[POST => $server->url('/batch/see/1'), { content => 'x' }], [POST => $server->url('/batch/503/1'), { content => 'x' }]]);
is("$responses[0]{content} $responses[0]{redirects}[0]{status} $responses[1]{status}", '2 GET  303 503', 'batch follows redirects of a POST with retries');
$began = time;
@responses = $http->batch([$server->url('/batch/429/1/after=1'), map { $server->url("/free$_/503/0") } 1 .. 5], { parallel => 1 });
is_deeply([map { $_->{status} } @responses], [(200) x 6], 'batch waits for a host');
cmp_ok(time - $began, '>=', 0.99, 'batch obeys Retry-After');
ok(!eval { $http->batch(\@urls, { retries => 'x' }); 1 }, 'batch refuses retries that are not valid');

# A signal ends a wait.
{
    local $SIG{ALRM} = sub { die "alarm\n" };
    alarm 1;
    my $response = HTTP::Haul->new(retries => { total => 1 })->get($server->url('/alarm/503/1/after=600'));
    alarm 0;
    is("$response->{status} $response->{content}", "599 alarm\n", 'signal handler that dies ends the wait');
}
done_testing;
