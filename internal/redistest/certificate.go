package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// TLSConfig returns a client's configuration for servers with TLS: the
// authority that signed their certificate, and a client certificate of that
// authority for servers with Config("tls-auth-clients", "yes"). All servers of
// a process share them. The caller owns the result.
func (s *Server) TLSConfig() *tls.Config {
	b, err := certificates()
	if err != nil {
		s.tb.Fatalf("redistest: certificates: %v", err)
	}
	return b.client.Clone()
}

// CertificateFiles returns the files of the authority, and of a certificate and
// its key that a client can use: what TLSConfig has, as PEM. The server must
// have been started with TLS.
func (s *Server) CertificateFiles() (authority, cert, key string) {
	return s.path("tls-ca-cert-file.pem"), s.path("tls-cert-file.pem"), s.path("tls-key-file.pem")
}

// bundle is an authority and a certificate for both ends, as PEM text and as
// a client's configuration.
type bundle struct {
	authority, cert, key []byte
	client               *tls.Config
}

// certificates is made at the first use, once for the whole process.
var certificates = sync.OnceValues(func() (b bundle, err error) {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redistest"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return b, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return b, err
	}
	if b.authority, err = sign(authority, authority, authorityKey, authorityKey); err != nil {
		return b, err
	}
	if b.cert, err = sign(leaf, authority, leafKey, authorityKey); err != nil {
		return b, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return b, err
	}
	b.key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	pair, err := tls.X509KeyPair(b.cert, b.key)
	b.client = &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	b.client.RootCAs.AppendCertsFromPEM(b.authority)
	return b, err
})

func sign(cert, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// writeCertificates returns the directives that name the files.
func writeCertificates(dir string) ([]directive, error) {
	b, err := certificates()
	if err != nil {
		return nil, err
	}
	lines := []directive{{"tls-auth-clients", "no"}}
	for _, file := range []struct {
		directive string
		text      []byte
	}{
		{"tls-ca-cert-file", b.authority}, {"tls-cert-file", b.cert}, {"tls-key-file", b.key},
	} {
		path := filepath.Join(dir, file.directive+".pem")
		if err := os.WriteFile(path, file.text, 0o600); err != nil {
			return nil, err
		}
		lines = append(lines, directive{file.directive, path})
	}
	return lines, nil
}
