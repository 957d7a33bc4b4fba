package Search::Elasticsearch::Cxn::Haul;

use Moo;
use HTTP::Haul ();

our $VERSION = '0.1.0';

# The requests are those of the class for HTTP::Tiny, whose methods and results HTTP::Haul has.
extends 'Search::Elasticsearch::Cxn::HTTPTiny';

# Called with the status and the reason of a failure.
sub error_from_text {
    my ($self, $status, $text) = @_;
    return
          $text =~ /\ATimed out/                    ? 'Timeout'
        : $text =~ /\AUnexpected end of stream/     ? 'ContentLength'
        : $text =~ /\ASSL connection failed/        ? 'SSL'
        : $text =~ /\ACould not connect/            ? 'Cxn'
        : $text =~ /Connection reset|Broken pipe/i  ? 'Cxn'
        :                                             'Request';
}

sub _build_handle {
    my ($self) = @_;
    my %arguments = (default_headers => $self->default_headers, %{ $self->handle_args });
    if ($self->is_https && $self->has_ssl_options) {
        my %options = %{ $self->ssl_options };
        # The certificate of the client is used if it is given.
        delete $options{SSL_use_cert};
        $arguments{SSL_options} = \%options;
    }
    return HTTP::Haul->new(%arguments);
}

1;

__END__

=encoding utf8

=head1 NAME

Search::Elasticsearch::Cxn::Haul - connections of Search::Elasticsearch over HTTP::Haul

=head1 SYNOPSIS

    use Search::Elasticsearch;

    my $es = Search::Elasticsearch->new(nodes => ['127.0.0.1:9200'], cxn => 'Haul');

=head1 DESCRIPTION

Makes reads and writes over kept connections. Methods and configuration are inherited from
L<Search::Elasticsearch::Cxn::HTTPTiny>. C<handle_args> are attributes of L<HTTP::Haul>. L<Search::Elasticsearch>
decides which node to try after a failure, so leave C<retries> off.

Certificates are verified, unless C<ssl_options> say C<< SSL_verify_mode => 0 >>; the class for HTTP::Tiny does not
verify them by default. HTTP::Haul lists the C<ssl_options> that it accepts; others are an error.

=head1 SEE ALSO

L<HTTP::Haul>, L<Search::Elasticsearch>

=cut
