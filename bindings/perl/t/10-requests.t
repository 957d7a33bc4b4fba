use strict;
use warnings;
use lib '.';
use Test::More;
use t::Server;
use HTTP::Haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy)};

# Echoes the request: a line for the request, a line for each field, an empty line, the body.
my $server = t::Server->start(sub {
    my ($request) = @_;
    my $path = $request->{target};
    return [200, { 'X-Many' => ['a', 'b', 'c'], 'X-One' => '  spaced  ', 'Content-Type' => 'text/plain' }, 'many'] if $path eq '/many';
    return [204, {}, ''] if $path eq '/204';
    return [304, { ETag => '"x"' }, ''] if $path eq '/304';
    return [404, {}, 'not here', 'Not Found'] if $path eq '/404';
    return [200, {}, join '', map { chr } 0 .. 255] if $path eq '/bytes';
    return [200, {}, 'x' x 335_114] if $path eq '/big';
    return [200, { Connection => 'close' }, 'last'] if $path eq '/close';
    return [200, {}, "$request->{connection}.$request->{number}"] if $path eq '/count';
    if ($path eq '/chunked') {
        return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n") };
    }
    if ($path eq '/old') {
        return sub { t::Server::write_all($_[0], "HTTP/1.0 200 OK\r\n\r\nto the end"); 0 };
    }
    if ($path =~ m{\A/line/(.*)}) {
        (my $line = $1) =~ tr/_/ /;
        return sub { t::Server::write_all($_[0], "$line\r\nContent-Length: 2\r\n\r\nok"); 0 };
    }
    if ($path eq '/100') {
        return sub { t::Server::write_all($_[0], "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") };
    }
    return [200, {}, join "\n", "$request->{method} $path $request->{version}", (map { "$_->[0]: $_->[1]" } @{ $request->{fields} }), '', $request->{body}];
});

my $http = HTTP::Haul->new;
isa_ok($http, 'HTTP::Haul');

my $response = $http->get($server->url('/echo?a=b#part'));
is(ref $response, 'HASH', 'response is a plain hash');
ok($response->{success}, 'success is true');
is($response->{status}, 200, 'status is that of the response');
is($response->{reason}, 'OK', 'reason is that of the response');
is($response->{protocol}, 'HTTP/1.1', 'protocol is HTTP/1.1');
is($response->{url}, $server->url('/echo?a=b#part'), 'url is the one requested');
is(ref $response->{headers}, 'HASH', 'headers are a hash');
ok(!exists $response->{redirects}, 'response without redirects has no redirects');
like($response->{content}, qr{\AGET /echo\?a=b HTTP/1\.1$}m, 'fragment is not sent');
like($response->{content}, qr/^Host: 127\.0\.0\.1:\d+$/mi, 'Host is sent');
like($response->{content}, qr/^User-Agent: HTTP-Haul\/\Q$HTTP::Haul::VERSION\E$/mi, 'User-Agent names the module');
unlike($response->{content}, qr/^(?:Accept|Accept-Encoding|Content-Length|Connection|TE):/mi, 'no further fields are sent');

$response = $http->get($server->url('/many'));
is_deeply($response->{headers}{'x-many'}, ['a', 'b', 'c'], 'repeated field is an array');
is($response->{headers}{'x-one'}, 'spaced', 'value has no surrounding blanks');
is($response->{headers}{'content-type'}, 'text/plain', 'names are in lower case');

for my $method (qw(put post patch delete head)) {
    $response = $http->$method($server->url('/x'), { content => "to $method" });
    ok($response->{success}, $method);
    if ($method eq 'head') {
        is($response->{content}, '', 'HEAD has no content');
        ok($response->{headers}{'content-length'}, 'HEAD has a Content-Length');
        next;
    }
    like($response->{content}, qr/\A\U$method\E \/x /, "$method as a method");
    like($response->{content}, qr/^Content-Type: application\/octet-stream$/mi, "$method: a type where none was given");
    like($response->{content}, qr/^Content-Length: @{[ length "to $method" ]}$/mi, "$method: the length");
    like($response->{content}, qr/\n\nto $method\z/, "$method: the content");
}
like($http->post($server->url('/x'))->{content}, qr/^Content-Length: 0$/mi, 'POST without content has Content-Length 0');
like($http->request('PROPFIND', $server->url('/x'))->{content}, qr/\APROPFIND \/x/, 'any method can be requested');

$response = $http->get($server->url('/x'), { headers => { 'X-A' => [1, 2], 'user-agent' => 'mine/1', Accept => 'text/*', 'X-None' => undef } });
like($response->{content}, qr/^X-A: 1\nX-A: 2$/m, 'several values are several fields');
like($response->{content}, qr/^user-agent: mine\/1$/mi, 'User-Agent of the request is sent');
is(() = $response->{content} =~ /^user-agent:/mig, 1, 'User-Agent is sent once');
like($response->{content}, qr/^Accept: text\/\*$/m, 'Accept is sent');
unlike($response->{content}, qr/X-None/, 'undef value sends no field');

for my $case (["a\r\n b", 'a b'], ["a\n\t\r\n  b", 'a b'], ["a\n b\r\n\tc", 'a b c'], ["a\r\nb: c", undef], ["a\n", undef], ["a\r b", undef]) {
    my ($value, $sent) = @$case;
    my ($folded, $listed) = ([$server->url('/x'), { headers => { 'X-A' => $value } }], [$server->url('/x'), { headers => { 'X-A' => ['0', $value] } }]);
    for my $reply ($http->get(@$folded), $http->get(@$listed), $http->batch([[GET => @$folded], [GET => @$listed]])) {
        if (defined $sent) { like($reply->{content}, qr/^X-A: \Q$sent\E$/m, 'folded value is sent on one line') }
        else               { is($reply->{status}, 599, 'line end in a value is 599') }
    }
}

my $default = HTTP::Haul->new(agent => 'Foo/1 ', default_headers => { 'X-Default' => 'yes', 'X-Other' => 'default' });
is($default->agent, "Foo/1 HTTP-Haul/$HTTP::Haul::VERSION", 'agent that ends with a blank is extended');
$response = $default->get($server->url('/x'), { headers => { 'x-other' => 'mine' } });
like($response->{content}, qr/^X-Default: yes$/m, 'default_headers are sent');
like($response->{content}, qr/^x-other: mine$/m, 'header of the request is sent');
unlike($response->{content}, qr/X-Other: default/, 'header of the request replaces the default');
like($response->{content}, qr/^User-Agent: \QFoo\/1 HTTP-Haul\/$HTTP::Haul::VERSION\E$/m, 'agent is sent');
$default->default_headers({ 'X-New' => 1 });
$default->agent('Bar/2');
$response = $default->get($server->url('/x'));
like($response->{content}, qr/^X-New: 1$/m, 'changed default_headers are sent');
like($response->{content}, qr/^User-Agent: Bar\/2$/m, 'changed agent is sent');

(my $with_user = $server->url('/x')) =~ s{//}{//us%20er:pa:ss@};
like($http->get($with_user)->{content}, qr/^Authorization: Basic dXMgZXI6cGE6c3M=$/mi, 'user and password of the URL are sent');
like($http->get($with_user, { headers => { authorization => 'Mine' } })->{content}, qr/^authorization: Mine$/mi, 'Authorization field overrides the user of the URL');

($with_user = $server->url('/a b?c d')) =~ s{//}{//us er:p w@};
my $blanks = $http->get($with_user);
like($blanks->{content}, qr{\AGET /a%20b\?c%20d HTTP}, 'blanks in a URL are encoded');
like($blanks->{content}, qr/^Authorization: Basic dXMgZXI6cCB3$/mi, 'blank in a password is kept');
is($blanks->{url}, $with_user, 'url is the one requested');

is($http->get($server->url('/204'))->{status}, 204, '204 is returned');
is($http->get($server->url('/204'))->{content}, '', '204 has no content');
$response = $http->get($server->url('/304'));
is("$response->{status}/" . ($response->{success} ? 1 : 0), '304/0', '304 is no success');
$response = $http->get($server->url('/404'));
ok(!$response->{success}, '404 is no success');
is("$response->{status} $response->{reason}: $response->{content}", '404 Not Found: not here', '404 has reason and content');
is($http->get($server->url('/bytes'))->{content}, join('', map { chr } 0 .. 255), 'bytes are unchanged');
is(length $http->get($server->url('/big'))->{content}, 335_114, 'large body is whole');
is($http->get($server->url('/chunked'))->{content}, 'hello world', 'chunked body is whole');
$response = $http->get($server->url('/old'));
is("$response->{protocol} $response->{content}", 'HTTP/1.0 to the end', 'body without length ends with the connection');
is($http->get($server->url('/100'))->{content}, 'ok', 'interim responses are ignored');

# Connections.
my $one = HTTP::Haul->new;
ok(!$one->connected, 'new object is not connected');
my ($first) = $one->get($server->url('/count'))->{content} =~ /(\d+)/;
is($one->connected, '127.0.0.1:' . $server->port, 'connected returns host and port');
is_deeply([$one->connected], ['127.0.0.1', $server->port], 'connected returns a pair in list context');
is($one->get($server->url('/count'))->{content}, "$first.2", 'second request uses the same connection');
is($one->get($server->url('/close'))->{content}, 'last', 'response with Connection: close is read');
ok(!$one->connected, 'closed connection is not connected');
isnt($one->get($server->url('/count'))->{content}, "$first.3", 'next request opens a connection');
my $each = HTTP::Haul->new(keep_alive => 0);
like($each->get($server->url('/x'))->{content}, qr/^Connection: close$/mi, 'keep_alive => 0 sends Connection: close');
my @numbers = map { $each->get($server->url('/count'))->{content} =~ /\.(\d+)/ } 1 .. 2;
is("@numbers", '1 1', 'keep_alive => 0 opens a connection each time');
like($each->get($server->url('/x'), { headers => { connection => 'X-A' } })->{content}, qr/^Connection: close$/mi, 'keep_alive => 0 overrides a Connection field');

# Calls with wrong arguments die.
for my $call ([get => []], [get => ['http://x/', 'y']], [get => ['http://x/', {}, 1]], [request => ['GET']], [post_form => ['http://x/']],
    [www_form_urlencode => ['x']], [mirror => ['http://x/']]) {
    my ($method, $arguments) = @$call;
    ok(!eval { $http->$method(@$arguments); 1 }, "$method(@$arguments) dies");
    like($@, qr/\AUsage: \$http->$method\(/, 'message has the usage');
}

# Requests that fail get the status 599.
for my $case (
    ['GET', 'http://127.0.0.1:1/',     {}, qr/Could not connect to '127\.0\.0\.1:1'/],
    ['GET', 'ftp://127.0.0.1/',        {}, qr/Unsupported URL scheme 'ftp'/],
    ['GET', 'no url',                  {}, qr/Cannot parse URL: 'no url'/],
    # haul's command guesses a scheme; a program that goes through a page's links would ask these
    # hosts.
    map({ ['GET', $_, {}, qr/\ACannot parse URL: '\Q$_\E'\n\z/] } "127.0.0.1:@{[$server->port]}/echo", "mailto:a\@127.0.0.1:@{[$server->port]}",
        'javascript:1', 'x/y', '/x', '//127.0.0.1/x', "http:/127.0.0.1:@{[$server->port]}/echo", 'http:', ''),
    ['GET', $server->url('/line/HTTP/2.0_200_OK'), {}, qr/\AUnsupported HTTP protocol: /],
    ['GET', $server->url('/line/HTTP/1.1_2x0_OK'), {}, qr/\AMalformed Status-Line: /],
    ['GET', $server->url('/x'), { headers => { 'X A' => 'b' } }, qr/\AInvalid HTTP header field name: /],
    ['GET', $server->url('/x'), { headers => { Host => 'other' } }, qr/The 'Host' header must not be provided/],
    ['GET', $server->url('/x'), { headers => { 'X-A' => "a\r\nB: c" } }, qr/./],
    ['GET', $server->url('/x'), { headers => { "X-A\nB" => 'a' } }, qr/./],
    ["GET / HTTP/1.1\r\nX: ", $server->url('/x'), {}, qr/./],
    ['POST', $server->url('/x'), { content => "\x{263a}" }, qr/Wide character in request message body/],
    ['GET', $server->url('/x'), { headers => { 'X-A' => "\x{263a}" } }, qr/Wide character/],
) {
    my ($method, $url, $options, $why) = @$case;
    my $response = $http->request($method, $url, $options);
    is($response->{status}, 599, "599: $why");
    ok(!$response->{success}, '599 is no success');
    is($response->{reason}, 'Internal Exception', 'reason is that of the response');
    like($response->{content}, $why, 'content is the message');
    is($response->{url}, $url, '599 has the URL');
    is($response->{headers}{'content-type'}, 'text/plain', '599 has a Content-Type');
    is($response->{headers}{'content-length'}, length $response->{content}, '599 has a Content-Length');
}

# Perl's strings: their internal encoding makes no difference.
my $text = "caf\xe9";
my $upgraded = $text;
utf8::upgrade($upgraded);
for my $content ($text, $upgraded) {
    like($http->post($server->url('/x'), { content => $content, headers => { 'X-A' => $content } })->{content}, qr/^X-A: caf\xe9$/m, 'Latin-1 field is sent as bytes');
    like($http->post($server->url('/x'), { content => $content })->{content}, qr/\n\ncaf\xe9\z/, 'Latin-1 content is sent as bytes');
    like(HTTP::Haul->new(agent => $content)->get($server->url('/x'))->{content}, qr/^User-Agent: caf\xe9$/m, 'Latin-1 agent is sent as bytes');
}

# Objects that overload stringification.
{
    package Stringy;
    use overload '""' => sub { ${ $_[0] } }, fallback => 1;
}
my $url = bless \(my $plain = $server->url('/count')), 'Stringy';
ok($http->get($url)->{success}, 'object with overloading is a URL');

# A subclass with its own request.
{
    package Mine;
    our @ISA = ('HTTP::Haul');
    sub request { my ($self, @rest) = @_; $self->{seen}++; return $self->SUPER::request(@rest) }
}
my $mine = Mine->new;
like($mine->get($server->url('/x'))->{content}, qr/^User-Agent: Mine/m, 'subclass has its own agent');
$mine->post_form($server->url('/x'), { a => 1 });
is($mine->{seen}, 2, 'overridden request is called by other methods');

# A program, or a module that tests it, replaces the method.
for my $class (qw(HTTP::Haul Heir)) {
    no warnings qw(once redefine);
    local @Heir::ISA = ('HTTP::Haul');
    my @seen;
    $class->new->get($server->url('/x'));
    my $was = \&HTTP::Haul::request;
    local *HTTP::Haul::request = sub { push @seen, $_[1]; return $was->(@_) };
    my $object = $class->new;
    $object->get($server->url('/x'));
    $object->post_form($server->url('/x'), { a => 1 });
    is("@seen", 'GET POST', "replaced request is called by other methods of $class");
}

ok(HTTP::Haul->can_ssl, 'can_ssl is true');
my ($ok, $why) = HTTP::Haul->new(SSL_options => { SSL_ca_file => '/nonexistent' })->can_ssl;
ok(!$ok && $why, 'can_ssl is false without the CA file');

done_testing;
