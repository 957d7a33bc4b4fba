#!perl -T
# Behaviour of LWP that programs rely on although it is not documented; with taint checks.
use strict;
use warnings;
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;

BEGIN {
    unshift @INC, grep { !ref && -d && /(.*)/ } map { /\A(.*)\z/s ? $1 : () } '.';
    eval { require LWP::UserAgent; 1 } or plan(skip_all => 'LWP is not installed');
}
use t::Server;
use LWP::Protocol::haul;

delete @ENV{qw(http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY no_proxy PERL_LWP_ENV_PROXY PATH ENV BASH_ENV CDPATH IFS)};

my $server = t::Server->start(sub {
    my ($request) = @_;
    my $target = $request->{target};
    return sub { 0 } if $target eq '/nothing';
    # Closed at once, with nothing left to be sent: a reset.
    return sub { setsockopt $_[0], SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0; 0 } if $target eq '/reset';
    return sub { t::Server::write_all($_[0], "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"); 1 } if $target eq '/stalls';
    return [$1, { Location => '/b' }, ''] if $target =~ m{\A/(30\d)\z};
    return [401, { 'WWW-Authenticate' => 'Basic realm="r"' }, ''] if $target eq '/401' && !$request->{headers}{authorization};
    return [200, {}, "body $request->{body}"] if $target eq '/b' || $target eq '/401';
    return [200, { 'Content-Type' => 'text/plain' }, join ' ', $target, $request->{connection},
        map { $request->{headers}{$_} // '-' } qw(authorization content-length)];
});
my $ua = LWP::UserAgent->new;
my $streamed = sub { my $all = ''; my $response = $ua->get(@_, ':content_cb' => sub { $all .= $_[0] }); $response->content($all); $response };

# Paths may be signed.
for my $path ('/a/../b', '/a/./b', '/%2e%2e/x', '/..') {
    for my $get (sub { $ua->get(@_) }, $streamed) {
        like($get->($server->url($path))->content, qr/\A\Q$path\E /, "$path as it is");
    }
}

# A URL from a page is as good as another: URI has taken it apart.
my $link = '/from' . substr $ua->get($server->url('/x'))->content, 0, 0;
is($ua->get($server->url($link))->code, 200, 'tainted URL is requested');
is($streamed->($server->url($link))->code, 200, 'tainted URL can be streamed');

# Users in URLs (RFC 7617 section 2).
my $of = sub { my ($user) = @_; (my $url = $server->url('/u')) =~ s{//}{//$user\@}; (split ' ', $ua->get($url)->content, 3)[2] };
is($of->('me'), 'Basic bWU6 -', 'user without password is sent');
is($of->('me:p%3aw'), 'Basic bWU6cDp3 -', 'encoded password is decoded');
is($of->(''), '- -', 'empty user sends no Authorization');

# A server of one process has time for one connection.
my $connection = sub { (split ' ', $_[0]->get($server->url('/c'))->content)[1] };
my $other = LWP::UserAgent->new;
is($connection->($other), $connection->($ua), 'user agents share connections');
$other->conn_cache(undef);
isnt($connection->($other), $connection->($ua), 'conn_cache(undef) shares no connection');
isnt($connection->($other), $connection->($other), 'conn_cache(undef) keeps no connection');

# "This is called frequently as the response is received."
{
    package t::Told;
    our @ISA = 'LWP::UserAgent';
    sub progress { my ($self, $status) = @_; push @{ $self->{told} }, $status }
}
my $told = t::Told->new;
$told->get($server->url('/x'));
is("@{ $told->{told} }", 'begin 1 end', 'progress of a subclass is called');

# NTLM and Negotiate log connections in, not requests.
my $logs_in = LWP::UserAgent->new;
my $as = sub { my ($how) = @_; (split ' ', $logs_in->get($server->url('/c'), Authorization => $how)->content)[1] };
my $shared = $connection->($ua);
is($as->('Basic dTpw'), $shared, 'Basic shares the connection');
my $alone = $as->('NTLM TlRMTVNTUAAB');
isnt($alone, $shared, 'NTLM opens its own connection');
is($as->('Basic dTpw'), $alone, 'NTLM user agent keeps its connection');
is($connection->($_), $shared, 'NTLM connection is not shared') for $ua, LWP::UserAgent->new;
{
    my $clone = $logs_in->clone;
    is($connection->($clone), $shared, 'clone does not use the NTLM connection of its original');
    is($connection->($clone->clone), $shared, 'nor does the clone of a clone');
    my $second = $clone->get($server->url('/c'), Authorization => 'NTLM TlRMTVNTUAAB');
    my $logged_in = (split ' ', $second->content)[1];
    isnt($logged_in, $alone, 'clone that logs in opens its own NTLM connection');
    is($connection->($clone), $logged_in, 'clone keeps its NTLM connection');
    is($connection->($logs_in), $alone, 'original keeps its NTLM connection');
    # A clone whose original is gone is none the less not the owner.
    my $original = LWP::UserAgent->new;
    $logged_in = (split ' ', $original->get($server->url('/c'), Authorization => 'NTLM TlRMTVNTUAAB')->content)[1];
    my $last = $original->clone;
    undef $original;
    isnt($connection->($last), $logged_in, 'clone does not inherit the NTLM connection');
}

# What cannot be sent twice does not go where the server may just be closing.
my $of_post = sub { (split ' ', $_[0]->post($server->url('/c'), @_[1 .. $#_])->content)[1] };
my $kept = $connection->($ua);
is($connection->($ua), $kept, 'GET uses the kept connection');
isnt($of_post->($ua), $kept, 'POST opens a connection');
$kept = $connection->($ua);
my @content = ('once');
my $request = HTTP::Request->new(PUT => $server->url('/c'), [], sub { shift @content });
isnt((split ' ', $ua->request($request)->content)[1], $kept, 'content callback opens a connection');
{
    my $asks = LWP::UserAgent->new(keep_alive => 1);
    $kept = $connection->($asks);
    is($of_post->($asks), $kept, 'keep_alive lets POST use the kept connection');
    local $LWP::Protocol::haul::KEEP_ALIVE = 'all';
    $kept = $connection->($ua);
    is($of_post->($ua), $kept, 'KEEP_ALIVE=all lets POST use the kept connection');
}

# Content by callback is sent once: behind a redirect, or after a 401, there would be an empty body.
{
    my $follows = LWP::UserAgent->new(requests_redirectable => [qw(GET HEAD PUT)]);
    my $put = sub { my ($path, $code) = @_; return $follows->request(HTTP::Request->new(PUT => $server->url($path), [], $code)) };
    for my $path ('/301', '/307', '/401') {
        $follows->credentials('127.0.0.1:' . $server->port, 'r', 'me', 'pw');
        my @once = ('once');
        my $response = $put->($path, sub { shift @once });
        is($response->code, 500, "$path: content that was given once");
        like($response->message, qr/\Athe content callback was called to its end already/, 'message says that the callback ended');
        my $at = 0;
        $response = $put->($path, sub { $at++ % 2 ? '' : 'again' });
        is($response->code, 200, "$path: content that begins anew");
        like($response->content, qr/ again\z/, 'content that restarts is sent again');
    }
    my @queue = ('first');
    my $code = sub { shift @queue };
    is($put->('/b', $code)->code, 200, 'same callback can serve another request');
    is($put->('/b', $code)->code, 200, 'same callback may be empty then');
}

# Requests that LWP's own module makes.
my $requests = $LWP::Protocol::haul::REQUESTS;
is($ua->get($server->url('/u'), Upgrade => 'x')->code, 200, 'Upgrade is answered');
is($ua->get($server->url('/u'), 'If-SSL-Cert-Subject' => 'x')->code, 200, 'If-SSL-Cert-Subject is answered');
{
    local @LWP::Protocol::http::EXTRA_SOCK_OPTS = (LocalAddr => '127.0.0.1');
    is($ua->get($server->url('/u'))->code, 200, 'EXTRA_SOCK_OPTS is answered');
}
is($LWP::Protocol::haul::REQUESTS, $requests, 'these requests go by LWP');

# Content-Length without content.
{
    local $SIG{__WARN__} = sub { };
    like($ua->get($server->url('/l'), 'Content-Length' => 99)->content, qr/ -\z/, 'Content-Length without content is not sent');
}

# Messages that programs search for.
like($ua->get($server->url('/nothing'))->status_line, qr/\A500 Server closed connection without sending any data back/, 'missing response has the message of LWP');
is($ua->post($server->url('/reset'))->status_line, '500 Status read failed: Connection reset by peer', 'reset has the message of LWP');
like($ua->get('http://127.0.0.1:1/')->status_line, qr/\A500 Can't connect to 127\.0\.0\.1:1 \(Connection refused\)/, 'refused connection has the message of LWP');
like($ua->get('http://nowhere.invalid/')->status_line, qr/\A500 Can't connect to nowhere\.invalid:80 \(Name or service not known\)/, 'unknown host has the message of LWP');
$ua->timeout(1);
like($ua->get($server->url('/stalls'))->header('X-Died'), qr/\Aread timeout/, 'timeout has the message of LWP');
done_testing;
