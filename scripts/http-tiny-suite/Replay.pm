package Replay;

# Serves the files that HTTP::Tiny's tests use as sockets: pairs of a file for the request and a file with the response. A child
# process serves them on a listening socket, one pair for each connection. Functions of the tests' Util module that change
# HTTP::Tiny's internals are replaced.

use strict;
use warnings;

use IO::Handle ();
use IO::Socket::INET ();

my ($listener, $child, $through, @pairs, $seen);

sub _listener {
    return $listener ||= IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1', Proto => 'tcp') || die "listen: $!";
}

sub _address { return '127.0.0.1:' . _listener()->sockport }

# Returns the URL of this server as a proxy with the same credentials.
sub as_proxy {
    my ($url) = @_;
    my ($auth) = $url =~ m{//([^/\@]*\@)};
    return 'http://' . (defined $auth ? $auth : '') . _address() . '/';
}

# Reads a whole request.
sub _request {
    my ($socket) = @_;
    my $text = '';
    my $more = sub { sysread $socket, $text, 65536, length $text };
    until ($text =~ /\r\n\r\n/) { $more->() or return $text }
    my $head = index($text, "\r\n\r\n") + 4;
    if (substr($text, 0, $head) =~ /^Content-Length: *(\d+)/mi) {
        while (length $text < $head + $1) { $more->() or last }
    }
    elsif (substr($text, 0, $head) =~ /^Transfer-Encoding: *chunked/mi) {
        until (substr($text, $head - 2) =~ /\r\n0\r\n(?:[^\r\n]+\r\n)*\r\n\z/) { $more->() or last }
    }
    return $text;
}

sub _serve {
    for my $pair (@pairs) {
        my $socket = _listener()->accept or last;
        my ($to, $from) = @$pair;
        my $request = _request($socket);
        print {$to} $request;
        $to->flush;
        local $/;
        seek $from, 0, 0;
        my $response = <$from>;
        for (my $at = 0; $at < length $response; ) {
            $at += syswrite $socket, $response, length($response) - $at, $at or last;
        }
        close $socket;
    }
    return;
}

# Starts the child, which serves one connection for each pair. Returns host and port.
sub begin {
    ($through) = @_;
    end();
    _listener();
    $child = fork;
    defined $child or die "fork: $!";
    if (!$child) {
        local $SIG{ALRM} = 'DEFAULT';
        local $SIG{PIPE} = 'IGNORE';
        alarm 60;
        _serve();
        require POSIX;
        POSIX::_exit(0);
    }
    return _address();
}

# Ends the child, which still waits after a refused request.
sub end {
    return unless $child;
    kill 'KILL', $child;
    waitpid $child, 0;
    undef $child;
    return;
}

# Returns host and port of the last request, from its own fields.
sub _where {
    my $to = @pairs ? $pairs[0][0] : return;
    seek $to, 0, 0;
    local $/;
    my $request = <$to>;
    return unless defined $request;
    if ($request =~ /\A\S+ http:/ && defined $through) {
        my ($host, $port) = $through =~ m{//(?:[^/\@]*\@)?([^/:]+)(?::(\d+))?};
        return ($host, $port || 80);
    }
    my ($host, $port) = $request =~ /^Host: *([^:\r\n]+)(?::(\d+))?/mi;
    # The tests expect 80 for an empty port.
    return ($host, $port || 80);
}

# Normalises differences that HTTP ignores: the case of field names and chunk sizes.
sub _alike {
    my ($text) = @_;
    my ($head, $body) = split /\r\n\r\n/, $text, 2;
    return $text unless defined $body;
    $head =~ s/^([^\s:]+):/\L$1:/mg;
    $body =~ s/^([0-9A-Fa-f]+)\r$/\U$1\r/mg if $head =~ /^transfer-encoding: chunked/m;
    $body =~ s/^([A-Za-z-]+):/\L$1:/mg;
    return "$head\r\n\r\n$body";
}

# Loads the tests' Util module before they do.
{
    package Util;
    our @EXPORT_OK;
    my $file = 't/Util.pm';
    (my $loaded = do "./$file") or die "$file: ", $@ || $!;
    $INC{'Util.pm'} = $file;
    no warnings 'redefine';
    my $sort = \&sort_headers;
    *sort_headers = sub { return $sort->(Replay::_alike($_[0])) };
    *monkey_patch = sub { delete @ENV{ map { ($_, uc) } qw(http_proxy https_proxy all_proxy) } };
    *set_socket_source = sub { push @pairs, [@_] };
    *clear_socket_source = sub { @pairs = () };
    *connect_args = sub { return Replay::_where() };
}

END { end() }

1;
