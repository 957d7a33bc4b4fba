package OverHaul;

# Loaded into each of Mojolicious' tests: the requests of Mojo::UserAgent are those of HTTP::Haul::Promise. Mojo::UserAgent still follows
# redirects, stores cookies and chooses the proxy. It makes requests that HTTP::Haul does not offer itself: see _left_out. Each process
# appends the numbers of both to the file HAUL_SUITE_LOG.

use strict;
use warnings;
use Scalar::Util qw(weaken);

# Leaves out the subtests of `excluded` (lines of FILE: NAME, then a tab and the reason).
my %excluded;
{
    (my $list = __FILE__) =~ s/OverHaul\.pm\z/excluded/;
    open my $in, '<', $list or die "$list: $!";
    while (my $line = <$in>) { $excluded{"$1: $2"} = $3 if $line =~ /\A(\S+): ([^\t]+)\t(.+)/ }
    require Test::More;
    my $subtest = \&Test::More::subtest;
    no warnings 'redefine';
    *Test::More::subtest = sub {
        my ($name) = @_;
        my $why = $excluded{"$0: $name"};
        goto &$subtest unless defined $why;
        return Test::More->builder->skip("$name: $why");
    };
}

my $of   = $$;
my $sent = 0;
my %left;
my $number = 0;
# Objects that stand for the streams of requests by haul, because tests set their time limit.
my %streams;

# After the test is compiled, because its BEGIN blocks set the environment for Mojolicious.
INIT {
    require HTTP::Haul;
    require HTTP::Haul::Promise;
    require Mojo::Message::Request;
    require Mojo::UserAgent;
    my $connection = \&Mojo::UserAgent::_connection;
    my $stream_of  = \&Mojo::IOLoop::stream;
    no warnings 'redefine';
    *Mojo::IOLoop::stream = sub {
        my ($loop, $id) = @_;
        return !ref $id && $streams{ $id || '' } || $stream_of->(@_);
    };
    *Mojo::UserAgent::_connection = sub {
        my ($ua, $loop, $tx, $cb) = @_;
        if (my $why = _left_out($tx)) {
            $left{$why}++;
            return $ua->$connection($loop, $tx, $cb);
        }
        $sent++;
        my $id = 'haul' . ++$number;
        $ua->{connections}{$id} = { cb => $cb, ioloop => $loop, tx => $tx };
        my $stream = $streams{$id} = OverHaul::Stream->new;
        weaken(my $weak = $ua);
        my $timer;
        $stream->on(timeout => sub {
            my (undef, $seconds) = @_;
            $loop->remove($timer) if $timer;
            $timer = $loop->timer($seconds => sub { $weak->_error($id, 'Inactivity timeout') if $weak && $weak->{connections}{$id} });
        });
        $tx->connection($id);
        _collect($ua, $loop, $tx, $id, '');
        return $id;
    };
}

# The reason why Mojo::UserAgent makes a request itself, if it does.
sub _left_out {
    my ($tx) = @_;
    my $req = $tx->req;
    my $url = $req->url;
    return 'WebSocket or Upgrade' if $req->is_handshake || $req->headers->upgrade;
    return 'CONNECT'              if uc $req->method eq 'CONNECT';
    return 'scheme'               if ($url->protocol || '') !~ /\Ahttps?\z/;
    return 'interim responses'    if $tx->has_subscribers('unexpected');
    return 'Host'                 if defined $req->headers->host && $req->headers->host ne ($url->host_port || '');
    return;
}

# Collects what Mojo would write, which may come piece by piece, and sends the request when it is complete.
sub _collect {
    my ($ua, $loop, $tx, $id, $bytes) = @_;
    while (length(my $chunk = $tx->client_write)) { $bytes .= $chunk }
    return _send($ua, $loop, $tx, $id, $bytes) if $tx->req->is_finished;
    weaken $ua;
    $tx->once(resume => sub { _collect($ua, $loop, $tx, $id, $bytes) if $ua });
    return;
}

sub _send {
    my ($ua, $loop, $tx, $id, $bytes) = @_;
    my $req = Mojo::Message::Request->new(max_message_size => 0);
    # The parts of a form stay one text.
    $req->content->auto_upgrade(0);
    $req->parse($bytes);
    my $headers = $req->headers->to_hash(1);
    delete @$headers{qw(Host Content-Length Transfer-Encoding Proxy-Authorization)};
    my $url = $tx->req->url->clone->fragment(undef)->userinfo(undef);
    my %options = (headers => $headers);
    $options{content} = $req->body if length $req->body;
    weaken $ua;
    # A test's code runs outside of the promise, so that the loop gets its errors.
    my $later = sub {
        my ($code, @result) = @_;
        $loop->next_tick(sub { $code->($ua, $id, $tx, @result) if _waits($ua, $id, $tx) });
    };
    _async($ua, $loop, $tx)->request_p(uc $tx->req->method, "$url", \%options)
        ->then(sub { $later->(\&_received, @_) }, sub { $later->(\&_failed, @_) });
    return;
}

# Returns whether the request was not given up meanwhile.
sub _waits {
    my ($ua, $id, $tx) = @_;
    my $waits = $ua && $ua->{connections}{$id};
    return $waits && ($waits->{tx} || '') eq $tx;
}

# The client of HTTP::Haul for the current settings of a user agent.
sub _async {
    my ($ua, $loop, $tx) = @_;
    my $proxy = $tx->req->via_proxy && $tx->req->proxy;
    $proxy = $proxy ? $proxy->to_unsafe_string : '';
    $proxy =~ s/\Asocks:/socks5h:/;
    my $timeout = $ua->inactivity_timeout || 3600;
    my %tls = (SSL_ca_file => scalar $ua->ca, SSL_cert_file => scalar $ua->cert, SSL_key_file => scalar $ua->key, %{ $ua->tls_options });
    delete @tls{ grep { !defined $tls{$_} } keys %tls };
    my $key = join "\0", "$loop", $proxy, $timeout, $ua->insecure || 0, map { "$_=$tls{$_}" } sort keys %tls;
    return $ua->{over_haul}{$key} ||= do {
        my $http = HTTP::Haul->new(
            agent => undef, max_redirect => 0, timeout => $timeout, timings => 1, verify_SSL => !$ua->insecure, SSL_options => \%tls,
            proxy => undef, http_proxy => $proxy || undef, https_proxy => $proxy || undef, no_proxy => [],
        );
        HTTP::Haul::Promise->new($http, { ioloop => $loop, parallel => 1000, per_host => 1000 });
    };
}

# Gives a response to Mojo as the bytes of a response.
sub _received {
    my ($ua, $id, $tx, $response) = @_;
    my $peer = $response->{connection} || {};
    $tx->remote_address($peer->{address})->remote_port($peer->{port});
    $tx->kept_alive(1) if $peer->{reused};
    my %fields = %{ $response->{headers} };
    # The content has no chunks any more.
    $fields{'content-length'} = length $response->{content} if delete $fields{'transfer-encoding'};
    my $bytes = "$response->{protocol} $response->{status} $response->{reason}\r\n";
    for my $name (sort keys %fields) {
        my $spelled = join '-', map { ucfirst } split /-/, $name;
        $spelled = { Etag => 'ETag', Te => 'TE', 'Www-Authenticate' => 'WWW-Authenticate' }->{$spelled} || $spelled;
        $bytes .= "$spelled: $_\r\n" for ref $fields{$name} ? @{ $fields{$name} } : $fields{$name};
    }
    $tx->client_read("$bytes\r\n$response->{content}");
    return $ua->_finish($id, 1);
}

# Gives a failure to Mojo, in its words.
sub _failed {
    my ($ua, $id, $tx, $reason) = @_;
    return $ua->_finish($id, 1) if $reason =~ /closed the connection without a response|Unexpected end of stream/;
    return $ua->_error($id, $reason =~ /\ATimed out/ ? 'Inactivity timeout' : $reason);
}

package OverHaul::Stream;

use Mojo::Base 'Mojo::EventEmitter', -signatures;

sub bytes_read    { 0 }
sub bytes_written { 0 }
sub timeout ($self, $seconds) { $self->emit(timeout => $seconds) }

package OverHaul;

END {
    if (defined $ENV{HAUL_SUITE_LOG} && $$ == $of) {
        local $?;
        open my $log, '>>', $ENV{HAUL_SUITE_LOG} or die "$ENV{HAUL_SUITE_LOG}: $!";
        printf {$log} "%d %s%s\n", $sent, $0, join '', map { ", $left{$_} by Mojo ($_)" } sort keys %left;
    }
}

1;
