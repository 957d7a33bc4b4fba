// Command quicgo-server serves HTTP/3 with quic-go, and HTTP/2 with net/http on the TCP port of the same number. It is the server in the job "h3" of the bench, and one of the servers with which
// the tests of HTTP/3 are run (crates/cli/tests/suite/http3_servers.rs).
//
//	GET  /bytes/NAME   a file of the directory bytes under -root, with ranges
//	any  /echo         the content of the request, with its trailers
//	any  /digest       the SHA-256 of the content in hexadecimal digits
//	GET  /trailers     some text, and the trailers End and Sha256
//
// Each response has the fields Connection-Number (of the connection, counted from 1 over both protocols) and Retry-Count (the Retry
// packets that the server has sent).
package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"haul.example/bench/http3/version"
)

// tcpCongestion is the socket option TCP_CONGESTION of Linux, which package syscall does not have on every architecture.
const tcpCongestion = 13

// connectionNumber is the key of the number of a connection in its context.
type connectionNumber struct{}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address and port")
	addressFile := flag.String("address-file", "", "file to which the address and port are written when the server listens")
	certificate := flag.String("cert", "cert.pem", "file with the certificate chain")
	key := flag.String("key", "key.pem", "file with the private key")
	root := flag.String("root", ".", "directory of the files")
	retry := flag.Bool("retry", false, "validate the address of each client by a Retry packet")
	streams := flag.Int64("streams", 100, "requests at a time on a connection")
	congestion := flag.String("tcp-congestion", "", "congestion control of TCP, such as cubic (default: the system's)")
	showVersion := flag.Bool("version", false, "print the version of quic-go")
	flag.Parse()
	if *showVersion {
		fmt.Println(version.QuicGo())
		return
	}
	if err := serve(*listen, *congestion, *addressFile, *certificate, *key, *root, *retry, *streams); err != nil {
		fmt.Fprintln(os.Stderr, "quicgo-server:", err)
		os.Exit(1)
	}
}

func serve(listen, congestion, addressFile, certificate, key, root string, retry bool, streams int64) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return err
	}
	socket, tcp, err := listenBoth(address, congestion)
	if err != nil {
		return err
	}
	var connections, retries atomic.Int64
	transport := &quic.Transport{Conn: socket}
	if retry {
		transport.VerifySourceAddress = func(net.Addr) bool {
			retries.Add(1)
			return true
		}
	}
	settings := &tls.Config{Certificates: []tls.Certificate{pair}}
	listener, err := transport.ListenEarly(http3.ConfigureTLSConfig(settings), &quic.Config{MaxIncomingStreams: streams})
	if err != nil {
		return err
	}
	if addressFile != "" {
		if err := writeWhole(addressFile, socket.LocalAddr().String()); err != nil {
			return err
		}
	}
	files := handler(root)
	numbered := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		number, _ := request.Context().Value(connectionNumber{}).(int64)
		response.Header().Set("Connection-Number", strconv.FormatInt(number, 10))
		response.Header().Set("Retry-Count", strconv.FormatInt(retries.Load(), 10))
		files.ServeHTTP(response, request)
	})
	withNumber := func(ctx context.Context) context.Context {
		return context.WithValue(ctx, connectionNumber{}, connections.Add(1))
	}
	failed := make(chan error)
	go func() {
		server := &http.Server{
			Handler:     numbered,
			TLSConfig:   settings,
			ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return withNumber(ctx) },
		}
		failed <- server.ServeTLS(tcp, "", "")
	}()
	go func() {
		server := &http3.Server{
			Handler:     numbered,
			ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context { return withNumber(ctx) },
		}
		failed <- server.ServeListener(listener)
	}()
	return <-failed
}

// listenBoth listens on UDP and TCP ports of the same number. If the system chooses the number, the TCP port may be taken.
func listenBoth(address *net.UDPAddr, congestion string) (*net.UDPConn, net.Listener, error) {
	settings := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
		if congestion == "" {
			return nil
		}
		var refused error
		err := socket.Control(func(descriptor uintptr) {
			refused = syscall.SetsockoptString(int(descriptor), syscall.IPPROTO_TCP, tcpCongestion, congestion)
		})
		return errors.Join(err, refused)
	}}
	for attempt := 0; ; attempt++ {
		udp, err := net.ListenUDP("udp", address)
		if err != nil {
			return nil, nil, err
		}
		tcp, err := settings.Listen(context.Background(), "tcp", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp, nil
		}
		udp.Close()
		if address.Port != 0 || attempt == 16 {
			return nil, nil, err
		}
	}
}

// writeWhole writes the file so that a reader finds either nothing or all of it.
func writeWhole(name, text string) error {
	if err := os.WriteFile(name+".part", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

func handler(root string) http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /bytes/{name}", func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFile(response, request, filepath.Join(root, "bytes", filepath.Base(request.PathValue("name"))))
	})
	routes.HandleFunc("/echo", echo)
	routes.HandleFunc("/digest", func(response http.ResponseWriter, request *http.Request) {
		digest := sha256.New()
		if _, err := io.Copy(digest, request.Body); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(response, "%x\n", digest.Sum(nil))
	})
	routes.HandleFunc("GET /trailers", func(response http.ResponseWriter, _ *http.Request) {
		const text = "text before trailers\n"
		response.Header().Set("Trailer", "End, Sha256")
		io.WriteString(response, text)
		response.Header().Set("End", "yes")
		response.Header().Set("Sha256", fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
	})
	return routes
}

func echo(response http.ResponseWriter, request *http.Request) {
	if request.ContentLength >= 0 {
		response.Header().Set("Content-Length", strconv.FormatInt(request.ContentLength, 10))
	}
	if _, err := io.Copy(response, request.Body); err != nil {
		// Resets the stream, so that the client cannot take the part for the whole.
		panic(http.ErrAbortHandler)
	}
	for name, values := range request.Trailer {
		response.Header()[http.TrailerPrefix+name] = values
	}
}
