// Command ech-server answers https requests with Encrypted Client Hello (RFC 9849), over TCP and by HTTP/3 on the UDP port of the
// same number, for haul's tests (crates/cli/tests/suite/encrypted_client_hello.rs). It makes a certificate for localhost, secret.example and public.example, and writes it to the
// file that its argument names. It prints one line:
//
//	PORT-WITH-KEY PORT-WITHOUT-KEY LIST OTHER-LIST
//
// LIST is the ECHConfigList of the key in base64, OTHER-LIST that of a key that the server does not have. Each
// response says whether the hello was encrypted, and for which name. The command ends with its standard input.
package main

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/quic-go/http3"
)

func main() {
	identity, text := certificate()
	if err := os.WriteFile(os.Args[1], text, 0o600); err != nil {
		log.Fatal(err)
	}
	key, config := echKey(7)
	_, other := echKey(8)
	keys := []tls.EncryptedClientHelloKey{{Config: config, PrivateKey: key.Bytes(), SendAsRetry: true}}
	encode := func(config []byte) string { return base64.StdEncoding.EncodeToString(list(config)) }
	fmt.Println(serve(identity, keys), serve(identity, nil), encode(config), encode(other))
	io.Copy(io.Discard, os.Stdin)
}

// serve starts a server on a free port, which it returns.
func serve(identity tls.Certificate, keys []tls.EncryptedClientHelloKey) int {
	listener, datagrams := listen()
	answer := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%t %s\n", r.TLS.ECHAccepted, r.TLS.ServerName)
	}
	settings := &tls.Config{Certificates: []tls.Certificate{identity}, EncryptedClientHelloKeys: keys}
	server := &http.Server{Handler: http.HandlerFunc(answer), TLSConfig: settings, ErrorLog: log.New(io.Discard, "", 0)}
	go server.ServeTLS(listener, "", "")
	go (&http3.Server{Handler: server.Handler, TLSConfig: http3.ConfigureTLSConfig(settings.Clone())}).Serve(datagrams)
	return listener.Addr().(*net.TCPAddr).Port
}

// listen opens a TCP port and the UDP port of the same number.
func listen() (net.Listener, net.PacketConn) {
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		if datagrams, err := net.ListenPacket("udp", listener.Addr().String()); err == nil {
			return listener, datagrams
		}
		listener.Close()
	}
}

// echKey makes a key of X25519 and its ECHConfig (RFC 9849 section 4).
func echKey(id byte) (*ecdh.PrivateKey, []byte) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	const publicName = "public.example"
	contents := []byte{id, 0, 0x20, 0, 32}
	contents = append(contents, key.PublicKey().Bytes()...)
	contents = append(contents, 0, 4, 0, 1, 0, 1, 0, byte(len(publicName)))
	contents = append(contents, publicName...)
	contents = append(contents, 0, 0)
	return key, append([]byte{0xfe, 0x0d}, list(contents)...)
}

// list puts the length before the bytes.
func list(bytes []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(bytes))), bytes...)
}

func certificate() (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "ech-server"},
		DNSNames:     []string{"localhost", "secret.example", "public.example"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, text
}
