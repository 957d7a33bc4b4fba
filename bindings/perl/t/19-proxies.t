use strict;
use warnings;
use lib '.';
use Test::More;
use t::Server;
use HTTP::Haul;

my @names = qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy REQUEST_METHOD CGI_HTTP_PROXY);
delete @ENV{@names};

# An HTTP proxy that echoes requests and refuses tunnels.
my $proxy = t::Server->start(sub {
    my ($request) = @_;
    my $auth = $request->{headers}{'proxy-authorization'} || 'none';
    return [$1, { 'Proxy-Authenticate' => 'Basic realm="p"' }, 'refused'] if $request->{method} eq 'CONNECT' && $request->{target} =~ /\A(\d+)\./;
    return [200, { 'X-Fields' => join ',', map { lc $_->[0] } @{ $request->{fields} } }, "$request->{method} $request->{target} $auth"];
});
my $origin = t::Server->start(sub { [200, {}, 'direct'] });
(my $with_user = $proxy->url('/')) =~ s{//}{//us%20er:p@};

my $http = HTTP::Haul->new(http_proxy => $proxy->url('/'));
my $response = $http->get('http://a.example/x?y#z');
is($response->{content}, 'GET http://a.example/x?y none', 'http_proxy gets the whole URL');
is($response->{headers}{'x-fields'}, 'host,user-agent', 'http_proxy gets the fields of HTTP::Tiny');
like(HTTP::Haul->new(proxy => $with_user)->get('http://a.example/')->{content}, qr/ Basic dXMgZXI6cA==\z/, 'user of the proxy URL is sent');
# Attributes set later count for the next request.
{
    my $later = HTTP::Haul->new;
    $later->proxy($proxy->url('/'));
    is($later->get('http://a.example/')->{content}, 'GET http://a.example/ none', 'proxy can be set later');
    is($later->https_proxy, $proxy->url('/'), 'proxy sets both schemes');
    $later->no_proxy('b.example, 127.0.0.1');
    is($later->get($origin->url('/'))->{content}, 'direct', 'no_proxy may be set to a string');
    is_deeply($later->no_proxy, ['b.example', '127.0.0.1'], 'no_proxy returns a list');
    @{ $later->no_proxy } = ();
    like($later->get($origin->url('/'))->{content}, qr/\AGET http:/, 'no_proxy can be emptied in place');
    push @{ $later->no_proxy }, '127.0.0.1';
    is($later->get($origin->url('/'))->{content}, 'direct', 'no_proxy can be extended in place');
    $later->no_proxy(undef);
    like($later->get($origin->url('/'))->{content}, qr/\AGET http:/, 'no_proxy can be removed');
    $later->proxy(undef);
    is($later->get($origin->url('/'))->{content}, 'direct', 'proxy can be removed');
    ok(!eval { $later->proxy('nonsense'); 1 } && $@ =~ /\Ageneric proxy URL must be/, 'proxy that is no URL dies');
    ok(!eval { $later->http_proxy('nonsense'); 1 } && $@ =~ /\Ahttp_proxy URL must be/, 'http_proxy that is no URL dies');
    my $own = HTTP::Haul->new(http_proxy => undef);
    $own->proxy($proxy->url('/'));
    is($own->get($origin->url('/'))->{content}, 'direct', 'proxy does not replace http_proxy');
    is($own->https_proxy, $proxy->url('/'), 'proxy sets the other scheme');
}
(my $in_bytes = $proxy->url('/')) =~ s{//}{//us\xc3\xbc:p@};
like(HTTP::Haul->new(proxy => $in_bytes)->get('http://a.example/')->{content}, qr/ Basic dXPDvDpw\z/, 'proxy URL may be bytes, as in the environment');
is($http->http_proxy, $proxy->url('/'), 'http_proxy returns the URL');
$http->http_proxy(undef);
is($http->get($origin->url('/'))->{content}, 'direct', 'http_proxy(undef) disables the proxy');
is(HTTP::Haul->new(proxy => $proxy->url('/'), no_proxy => '127.0.0.1')->get($origin->url('/'))->{content}, 'direct', 'no_proxy bypasses the proxy');
is(HTTP::Haul->new(proxy => $proxy->url('/'), no_proxy => ['example.com', '127.0.0.1'])->get($origin->url('/'))->{content}, 'direct', 'no_proxy may be a list');
{
    local $ENV{http_proxy} = $proxy->url('/');
    like(HTTP::Haul->new->get('http://a.example/')->{content}, qr/\AGET http:/, 'http_proxy of the environment is used');
    is(HTTP::Haul->new(http_proxy => undef)->get($origin->url('/'))->{content}, 'direct', 'http_proxy => undef overrides the environment');
    local $ENV{no_proxy} = '127.0.0.1';
    is(HTTP::Haul->new->get($origin->url('/'))->{content}, 'direct', 'no_proxy of the environment is used');
}
{
    local $ENV{HTTP_PROXY} = $proxy->url('/');
    local $ENV{REQUEST_METHOD} = 'GET';
    is(HTTP::Haul->new->get($origin->url('/'))->{content}, 'direct', 'HTTP_PROXY is ignored in a CGI program');
}
$response = HTTP::Haul->new(https_proxy => $proxy->url('/'))->get('https://407.example/');
is($response->{status}, 599, 'refused tunnel is 599');
like($response->{content}, qr/407/, 'message has the status of the proxy');


SKIP: {
    eval { require LWP::UserAgent; require LWP::Protocol::haul } or skip 'LWP is not installed', 4;
    my $ua = LWP::UserAgent->new;
    $ua->proxy(['http', 'https'] => $with_user);
    is($ua->get('http://a.example/x')->content, 'GET http://a.example/x Basic dXMgZXI6cA==', 'LWP uses the proxy');
    my $response = $ua->get('https://403.example/');
    is($response->code, 500, 'LWP: refused tunnel is 500');
    like($response->message, qr/\Aestablishing SSL tunnel failed: 403 Forbidden/, 'LWP: refused tunnel has the message of LWP');
    $ua->no_proxy('127.0.0.1');
    is($ua->get($origin->url('/'))->content, 'direct', 'no_proxy bypasses the proxy');
}
done_testing;
