package redistest_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestPassword_is_asked_of_clients(t *testing.T) {
	s := redistest.Start(t, redistest.Password(`p "w\ü@:/`))

	wantError(t, "NOAUTH", pingAt(redis.Dial(s.Network(), s.Addr())))
	if err := pingAt(redis.DialURL(s.URL())); err != nil {
		t.Errorf("a client with the password: %v", err)
	}

	// Do keeps its rights when a test changes the password.
	if _, err := s.Do("CONFIG", "SET", "requirepass", "another"); err != nil {
		t.Fatal(err)
	}
	wantError(t, "WRONGPASS", pingAt(redis.DialURL(s.URL())))
	if _, err := s.Do("PING"); err != nil {
		t.Errorf("Do after the change: %v", err)
	}
}

func TestUser_has_only_its_rights(t *testing.T) {
	s := redistest.Start(t, redistest.User("locker", "secret", "~lock:*", "+ping", "+set"))

	wantError(t, "NOAUTH", pingAt(redis.Dial(s.Network(), s.Addr())))
	conn, err := redis.DialURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Do("SET", "lock:a", "1"); err != nil {
		t.Errorf("SET lock:a: %v", err)
	}
	_, err = conn.Do("SET", "other", "1")
	wantError(t, "NOPERM", err)
	_, err = conn.Do("GET", "lock:a")
	wantError(t, "NOPERM", err)
	if _, err := s.Do("GET", "lock:a"); err != nil {
		t.Errorf("Do has fewer rights than all: %v", err)
	}
}

func TestUser_without_rules_may_do_everything(t *testing.T) {
	s := redistest.Start(t, redistest.User("root", "secret"))
	conn, err := redis.DialURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Do("FLUSHALL"); err != nil {
		t.Error(err)
	}
}

func TestTLS_server_speaks_only_TLS(t *testing.T) {
	s := redistest.Start(t, redistest.TLS())

	if err := pingAt(redis.Dial("tcp", s.Addr())); err == nil {
		t.Error("a client without TLS got an answer")
	}
	stranger := redis.DialTLSConfig(&tls.Config{RootCAs: x509.NewCertPool()})
	wantError(t, "unknown authority", pingAt(redis.DialURL(s.URL(), stranger)))
	if err := pingAt(redis.DialURL(s.URL(), redis.DialTLSConfig(s.TLSConfig()))); err != nil {
		t.Errorf("a client with %s and TLSConfig: %v", s.URL(), err)
	}
}

func TestTLS_server_can_ask_for_client_certificates(t *testing.T) {
	s := redistest.Start(t, redistest.TLS(), redistest.Config("tls-auth-clients", "yes"))

	with := s.TLSConfig()
	if err := pingAt(redis.DialURL(s.URL(), redis.DialTLSConfig(with))); err != nil {
		t.Errorf("a client with a certificate: %v", err)
	}
	without := s.TLSConfig()
	without.Certificates = nil
	if err := pingAt(redis.DialURL(s.URL(), redis.DialTLSConfig(without))); err == nil {
		t.Error("a client without a certificate got an answer")
	}
}

func TestUnix_socket_is_the_only_way_in(t *testing.T) {
	s := redistest.Start(t, redistest.UnixSocket())

	if s.Network() != "unix" || s.URL() != "unix://"+s.Addr() {
		t.Errorf("address %s %s, URL %s", s.Network(), s.Addr(), s.URL())
	}
	port, err := redis.Strings(s.Do("CONFIG", "GET", "port"))
	if err != nil || port[1] != "0" {
		t.Errorf("TCP port: %q, %v, want 0", port, err)
	}
	s.Restart()
	if err := pingAt(redis.Dial(s.Network(), s.Addr())); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestConfig_overrides_this_package(t *testing.T) {
	s := redistest.Start(t, redistest.Config("save", "3600", "1"), redistest.Config("databases", "3"))
	for name, want := range map[string]string{"save": "3600 1", "databases": "3"} {
		got, err := redis.Strings(s.Do("CONFIG", "GET", name))
		if err != nil || got[1] != want {
			t.Errorf("CONFIG GET %s: %q, %v, want %q", name, got, err, want)
		}
	}
}

func pingAt(conn redis.Conn, err error) error {
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Do("PING")
	return err
}

func wantError(t *testing.T, want string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
