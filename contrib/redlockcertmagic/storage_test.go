package redlockcertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/quorumlock/quorumlock/contrib/redlockcertmagic"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

// issuer signs what it is asked to, and counts.
type issuer struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int32
	during func() // is called while it issues
}

func (*issuer) IssuerKey() string { return "test" }

func (i *issuer) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	i.during()
	serial := int64(i.issued.Add(1))
	cert := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, csr.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// instance is CertMagic as one process has it.
func instance(t *testing.T, storage certmagic.Storage, i *issuer) *certmagic.Config {
	t.Helper()
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }, Logger: zap.NewNop()})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{i}, Logger: zap.NewNop()})
	return config
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStorage_has_one_of_many_instances_obtain_a_certificate(t *testing.T) {
	client, masters := redlocktest.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	i := &issuer{key: key, during: func() {
		if held, err := client.Inspect(t.Context(), "issue_cert_example.com"); err != nil || !held.Held {
			t.Errorf("a certificate is issued while the lock is free: %v", err)
		}
	}}
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 5 {
		config := instance(t, redlockcertmagic.New(&certmagic.FileStorage{Path: dir}, masters.Client()), i)
		all.Go(func() {
			if err := config.ObtainCertSync(t.Context(), "example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := i.issued.Load(); n != 1 {
		t.Errorf("%d certificates were issued to five instances, want 1", n)
	}
}

func TestStorage_tries_and_waits_and_unlocks(t *testing.T) {
	client, masters := redlocktest.New(t)
	one := redlockcertmagic.New(&certmagic.FileStorage{Path: t.TempDir()}, client)
	two := redlockcertmagic.New(one.Storage, masters.Client())
	try := func(want bool) {
		t.Helper()
		if ok, err := two.TryLock(t.Context(), "name"); ok != want || err != nil {
			t.Fatalf("TryLock returned %v, %v; want %v", ok, err, want)
		}
	}
	must(t, one.Lock(t.Context(), "name"))
	try(false)
	must(t, one.Lock(t.Context(), "another"))
	must(t, one.Unlock(t.Context(), "another"))
	must(t, one.Unlock(t.Context(), "name"))
	try(true)

	got := make(chan error, 1)
	go func() { got <- one.Lock(t.Context(), "name") }()
	must(t, two.Unlock(t.Context(), "name"))
	must(t, <-got)
	must(t, one.Unlock(t.Context(), "name"))

	if err := one.Unlock(t.Context(), "name"); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("the second Unlock: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := one.Lock(ended, "name"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lock with a context that has ended: %v", err)
	}
	masters.LoseQuorum()
	if ok, err := one.TryLock(t.Context(), "name"); ok || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("TryLock without a quorum: %v, %v", ok, err)
	}
	masters.Heal()
}

func TestStorage_does_not_let_the_holder_of_a_lost_lock_unlock_another(t *testing.T) {
	client, masters := redlocktest.New(t)
	s := redlockcertmagic.New(&certmagic.FileStorage{Path: t.TempDir()}, client)
	must(t, s.Lock(t.Context(), "name"))
	masters.Expire("name")

	if err := s.Lock(t.Context(), "name"); !errors.Is(err, redlock.ErrTaken) {
		t.Errorf("the lock is lost and not unlocked, and is locked again: %v", err)
	}

	must(t, s.Unlock(t.Context(), "name")) // lost: nothing is left to unlock
	must(t, s.Lock(t.Context(), "name"))
	must(t, s.Unlock(t.Context(), "name"))
}

func Example() {
	client, err := redlock.Dial(context.Background(), []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"})
	if err != nil {
		return
	}
	defer client.Close()
	shared := &certmagic.FileStorage{Path: "/mnt/shared"}
	certmagic.Default.Storage = redlockcertmagic.New(shared, client)
}
