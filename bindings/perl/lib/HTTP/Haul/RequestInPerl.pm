# HTTP::Haul's methods for requests that C cannot make alone: with redirects, retries, steps, a peer or
# a foreign cookie jar. HTTP::Haul loads this file when one of them is called first.
package HTTP::Haul;
use strict;
use warnings;
no warnings 'redefine';

sub _request_in_perl {
    my ($self, $method, $url, $args) = @_;
    my $response = eval {
        my %args = (%{ $args || {} });
        $args{headers} = $self->_fields($args{headers});
        $self->_options_in_perl(\%args, $method, $url);
        my $first = $self->_hop($method, $url, \%args);
        my $last = $self->_follow($first, $method, $url, \%args);
        $args{_steps}->report(done => { status => $last->{status}, url => $last->{url}, connection => $last->{connection} }) if $args{_steps};
        $last;
    };
    return $response || _internal_error($url, "$@");
}

# Replaces the options retries and on_step by the objects that carry them out.
sub _options_in_perl {
    my ($self, $args, $method, $url) = @_;
    my ($retries, $on_step) = delete @$args{qw(retries on_step)};
    $retries = $self->{retries} unless defined $retries;
    $on_step = $self->{on_step} unless defined $on_step;
    if ($on_step) {
        require HTTP::Haul::Steps;
        $args->{_steps} = HTTP::Haul::Steps->new($on_step, $method, $url);
        $args->{timings} = 1;
        $args->{on_step} = $args->{_steps}->of_exchange;
    }
    if ($retries) {
        require HTTP::Haul::Retry;
        my $policy = HTTP::Haul::Retry->of($retries);
        $args->{_retry} = $policy->state($self->{_holds} ||= {}) if $policy;
    }
    return;
}

# One request with the features that C does not have: foreign cookie jars, peer, steps.
sub _attempt {
    my ($self, $method, $url, $args) = @_;
    # A retry begins with the fields of the caller.
    $args = { %$args, headers => { %{ $args->{headers} } } };
    my $jar = $self->{cookie_jar};
    my $foreign = $jar && !$jar->isa('HTTP::Haul::Jar');
    if ($foreign) {
        require HTTP::Haul::ForeignJar;
        HTTP::Haul::ForeignJar::put($jar, $method, $url, $args->{headers});
    }
    # Code is asked for each host, also after a redirect. The engine is passed on, not stored in the
    # object: a callback may use the object for other requests meanwhile.
    my $peer = ref $args->{peer} eq 'CODE' ? $args->{peer}->(_host($url)) : $args->{peer};
    my $engine = $peer ? $self->_engine_to($peer) : $self->{_engine};
    my $response = $self->_once($engine, $method, $url, $args);
    HTTP::Haul::ForeignJar::take($jar, $method, $url, $response) if $foreign && $response->{status} != 599;
    $args->{_steps}->exchange($response) if $args->{_steps};
    return $response;
}

# One request with its retries.
sub _hop {
    my ($self, $method, $url, $args) = @_;
    return $args->{_retry}->request($self, $method, $url, $args) if $args->{_retry};
    return $self->_attempt($method, $url, $args);
}

# The engine that connects to `peer` (a host, or a host and a port) instead of the host of the URL.
sub _engine_to {
    my ($self, $peer) = @_;
    return $self->{_peers}{$peer} ||= do {
        die "Insecure dependency in connect while running with -T switch\n" if ${^TAINT} && _is_tainted($peer);
        my ($host, $port) = $peer =~ /\A(\[[^\]]*\]|[^:]*):([0-9]+)\z/ ? ($1, $2) : ($peer, 0);
        $self->{_engine}->_to($host, $port);
    };
}

# Follows redirects, at most max_redirect. Other methods than GET and HEAD follow a 303 only, as in
# HTTP::Tiny. Secrets are sent to the first origin only, and not again after a redirect has left it.
sub _follow {
    my ($self, $response, $method, $url, $args) = @_;
    my @redirects;
    $args ||= {};
    my %hop = (method => $method, content => $args->{content});
    while (my $location = $self->_redirect_location($response, $hop{method}, scalar @redirects)) {
        $hop{fields} ||= $self->_fields($args->{headers});
        push @redirects, $response;
        if (my $refused = $self->_next_hop(\%hop, $response, $location)) {
            $response = $refused;
            last;
        }
        $args->{_steps}->report(redirect => { status => $response->{status}, url => $hop{url} }) if $args->{_steps};
        $response = $self->_hop($hop{method}, $hop{url}, { %$args, content => $hop{content}, headers => $hop{fields} });
    }
    $response->{redirects} = \@redirects if @redirects;
    return $response;
}

# Changes `hop` (method, fields, content) into the request that a redirect asks for, and sets its
# url. Returns a response if that cannot be sent.
sub _next_hop {
    my ($self, $hop, $response, $location) = @_;
    my $from = $response->{url};
    my $to = eval { local $SIG{__DIE__}; _join("$from", $location) };
    return _internal_error($location, $@) unless defined $to;
    if ($response->{status} != 303 && ref $hop->{content} eq 'CODE') {
        return _internal_error("$to", "the content callback was called to its end already: the request cannot be sent again\n");
    }
    my $fields = $hop->{fields};
    if ($response->{status} == 303) {
        $hop->{method} = 'GET' unless $hop->{method} eq 'HEAD';
        undef $hop->{content};
        delete @$fields{ grep { /\A(?:content-(?:type|length|encoding|language|location)|transfer-encoding)\z/i } keys %$fields };
    }
    if (_origin($from) ne _origin($to)) {
        delete @$fields{ grep { _is_secret($_) } keys %$fields };
        $to =~ s{\A([^/?#]+://)[^/?#]*\@}{$1};
    }
    $hop->{url} = $to;
    return;
}

# ---- URLs of redirects (RFC 3986 section 5.2) ----

sub _join {
    my ($base, $to) = @_;
    $to =~ s/\A\s+|\s+\z//g;
    if ($to =~ m{\A([A-Za-z][A-Za-z0-9+.-]*):}) {
        die "Unsupported URL scheme '$1'\n" unless lc $1 eq 'http' || lc $1 eq 'https';
        return $to;
    }
    my ($scheme, $authority, $path, $query) = $base =~ m{\A([^:/?#]+)://([^/?#]*)([^?#]*)(\?[^#]*)?}
        or die "Cannot parse URL: '$base'\n";
    return "$scheme:$to" if $to =~ m{\A//};
    $authority =~ s/.*\@//s;
    my $root = "$scheme://$authority";
    $path = '/' unless length $path;
    return $root . $to if $to =~ m{\A/};
    return $root . $path . $to if $to =~ /\A\?/;
    return $root . $path . (defined $query ? $query : '') . $to if $to =~ /\A#/ || !length $to;
    $path =~ s{[^/]*\z}{};
    return $root . $path . $to;
}

1;
