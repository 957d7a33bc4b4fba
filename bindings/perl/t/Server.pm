package t::Server;

# A small HTTP server in a child process. It does not use HTTP::Haul or LWP, so that both sides
# cannot share a mistake. A test passes code that answers a request.
#
#   my $server = t::Server->start(sub { my ($request) = @_; return [200, { 'X-A' => 1 }, 'body'] });
#   $server->url('/path')
#
# The request is a hash: method, target, version, headers (lower case, as HTTP::Tiny's), fields (a
# list as sent), body, trailers, connection (its number), number (of the request on it). An answer
# may also be code that writes to the socket itself and returns true if the connection goes on.

use strict;
use warnings;

use IO::Socket::INET;
use IO::Select;

sub start {
    my ($class, $answer, %options) = @_;
    my $listener = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', Proto => 'tcp', ReuseAddr => 1)
        or die "cannot listen: $@";
    my $port = $listener->sockport;
    my $pid = fork;
    die "cannot fork: $!" unless defined $pid;
    if (!$pid) {
        # Does not run the END blocks and signal handlers of the test.
        $SIG{$_} = 'DEFAULT' for qw(TERM INT ALRM);
        $SIG{PIPE} = 'IGNORE';
        eval { _serve($listener, $answer, %options) };
        print STDERR "server: $@" if $@;
        require POSIX;
        POSIX::_exit(0);
    }
    close $listener;
    return bless { pid => $pid, port => $port, owner => $$ }, $class;
}

sub port { return $_[0]{port} }
sub url { my ($self, $path) = @_; return "http://127.0.0.1:$self->{port}" . (defined $path ? $path : '/') }

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    return unless $self->{owner} == $$;
    local ($?, $!);
    kill TERM => $pid;
    waitpid $pid, 0;
    return;
}

# A thread that ends does not end the server.
my $threads = 0;
sub CLONE { $threads++; return }
sub DESTROY { $_[0]->stop unless $threads }

# One loop for all connections, so that one process counts them.
sub _serve {
    my ($listener, $answer) = @_;
    my $select = IO::Select->new($listener);
    my (%buffer, %number, %requests, $connections);
    my $parent = getppid;
    while (1) {
        my @ready = $select->can_read(1);
        # Ends with the test, also if that was killed.
        return if !@ready && getppid != $parent;
        for my $socket (@ready) {
            if ($socket == $listener) {
                my $new = $listener->accept or next;
                $new->autoflush(1);
                setsockopt $new, 6, 1, 1;
                $select->add($new);
                $buffer{$new} = '';
                $number{$new} = ++$connections;
                next;
            }
            my $got = sysread $socket, $buffer{$socket}, 65536, length $buffer{$socket};
            my $goes_on = $got;
            while ($goes_on and my $request = _request(\$buffer{$socket})) {
                $request->{connection} = $number{$socket};
                $request->{number} = ++$requests{$socket};
                $goes_on = _answer($socket, $request, $answer->($request, $socket));
            }
            if (!$goes_on) {
                $select->remove($socket);
                delete $buffer{$socket};
                delete $number{$socket};
                delete $requests{$socket};
                close $socket;
            }
        }
    }
    return;
}

# Takes a complete request out of the buffer, if there is one.
sub _request {
    my ($buffer) = @_;
    $$buffer =~ /\A(.*?)\r\n\r\n/s or return;
    my ($head, $at) = ($1, $+[0]);
    my ($line, @lines) = split /\r\n/, $head;
    my ($method, $target, $version) = split / /, $line;
    my (%headers, @fields);
    for (@lines) {
        my ($name, $value) = /\A([^:]+):[ \t]*(.*?)[ \t]*\z/ or die "a bad line: $_";
        push @fields, [$name, $value];
        my $key = lc $name;
        $headers{$key} = exists $headers{$key} ? [ref $headers{$key} ? @{ $headers{$key} } : $headers{$key}, $value] : $value;
    }
    my ($body, %trailers) = ('');
    if (($headers{'transfer-encoding'} || '') eq 'chunked') {
        while (1) {
            pos($$buffer) = $at;
            $$buffer =~ /\G([0-9a-fA-F]+)[^\r]*\r\n/gc or return;
            my ($size, $from) = (hex $1, pos $$buffer);
            if (!$size) {
                pos($$buffer) = $from;
                $$buffer =~ /\G((?:[^\r\n]+\r\n)*)\r\n/gc or return;
                %trailers = map { /\A([^:]+):\s*(.*)\z/ ? (lc $1 => $2) : () } split /\r\n/, $1;
                $at = pos $$buffer;
                last;
            }
            return if length $$buffer < $from + $size + 2;
            $body .= substr $$buffer, $from, $size;
            $at = $from + $size + 2;
        }
    }
    elsif (my $length = $headers{'content-length'}) {
        return if length($$buffer) - $at < $length;
        $body = substr $$buffer, $at, $length;
        $at += $length;
    }
    substr $$buffer, 0, $at, '';
    return {
        method => $method, target => $target, version => $version, headers => \%headers, fields => \@fields, body => $body,
        trailers => \%trailers, head => $head,
    };
}

sub write_all {
    my ($socket, $text) = @_;
    my $done = 0;
    while ($done < length $text) {
        my $wrote = syswrite $socket, $text, length($text) - $done, $done;
        return 0 unless $wrote;
        $done += $wrote;
    }
    return 1;
}

sub _answer {
    my ($socket, $request, $answer) = @_;
    return $answer->($socket) if ref $answer eq 'CODE';
    my ($status, $headers, $body, $reason) = @$answer;
    my @headers = ref $headers eq 'HASH' ? map { my $name = $_; map { [$name, $_] } ref $headers->{$_} ? @{ $headers->{$_} } : $headers->{$_} } sort keys %$headers : @{ $headers || [] };
    $body = '' unless defined $body;
    my $text = "HTTP/1.1 $status " . (defined $reason ? $reason : $status == 200 ? 'OK' : 'Some') . "\r\n";
    $text .= "$_->[0]: $_->[1]\r\n" for @headers;
    $text .= 'Content-Length: ' . length($body) . "\r\n" unless $status == 204 || $status == 304;
    $text .= "\r\n";
    $text .= $body unless $request->{method} eq 'HEAD' || $status == 204 || $status == 304;
    return 0 unless write_all($socket, $text);
    return lc($request->{headers}{connection} || '') ne 'close';
}

1;
