package HTTP::Haul::JSON;

# Requests and responses in JSON: get_json and the other JSON methods of HTTP::Haul.

use strict;
use warnings;

our $VERSION = '0.1.0';

my $json;

# Loads the first of these modules that is there. A $SIG{__DIE__} of the program must not see that
# another one is missing.
sub _json {
    return $json ||= do {
        local ($@, $SIG{__DIE__});
        my $class = 'JSON::PP';
        for my $faster (qw(Cpanel::JSON::XS JSON::XS)) {
            if (eval "require $faster; 1") { $class = $faster; last }
        }
        require JSON::PP if $class eq 'JSON::PP';
        $class->new->utf8->allow_nonref->canonical;
    };
}

sub request {
    my ($http, $method, $url, $data, $args) = @_;
    my %fields = %{ $args ? $args->{headers} || {} : {} };
    # Fields of the object count as well as those of the request, unless they are undefined.
    my $default = $http->{default_headers} || {};
    my %has = map { lc($_) => 1 } keys %fields, grep { defined $default->{$_} } keys %$default;
    $fields{'Accept'} = 'application/json' unless $has{accept};
    my %more;
    if ($data) {
        $fields{'Content-Type'} = 'application/json' unless $has{'content-type'};
        $more{content} = _json()->encode($$data);
    }
    my $response = $http->request($method, $url, { %{ $args || {} }, %more, headers => \%fields });
    if ($response->{status} != 599 && length(defined $response->{content} ? $response->{content} : '')) {
        my $type = $response->{headers}{'content-type'};
        $type = '' if !defined $type || ref $type;
        if ($type =~ m{\A\s*application/(?:[^;\s]+\+)?json\b}i) {
            local ($@, $SIG{__DIE__});
            $response->{json} = eval { _json()->decode($response->{content}) };
            $response->{json_error} = "$@" if $@;
        }
    }
    return $response;
}

1;
