package fencesql_test

import (
	"database/sql"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/child"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// postgres starts a server of its own, behind a socket in a folder of its own.
func postgres(t *testing.T) *sql.DB {
	bin := filepath.Dir(installed(t, "postgres", "/usr/lib/postgresql/*/bin/postgres"))
	dir := folder(t)
	run(t, filepath.Join(bin, "initdb"), "-D", dir+"/data", "-U", "test", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
	serve(t, dir, syscall.SIGINT, filepath.Join(bin, "postgres"), "-D", dir+"/data", "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	return open(t, "pgx", "host="+dir+" user=test dbname=postgres")
}

// mariadb is the same with MariaDB.
func mariadb(t *testing.T) *sql.DB {
	server := installed(t, "mariadbd", "/usr/sbin/mariadbd")
	install := installed(t, "mariadb-install-db", "/usr/bin/mariadb-install-db")
	dir := folder(t)
	run(t, install, "--no-defaults", "--datadir="+dir+"/data", "--auth-root-authentication-method=normal")
	serve(t, dir, syscall.SIGTERM, server, "--no-defaults", "--datadir="+dir+"/data", "--socket="+dir+"/socket", "--skip-networking",
		"--pid-file="+dir+"/pid", "--innodb-flush-log-at-trx-commit=0")
	return open(t, "mysql", "root@unix("+dir+"/socket)/test")
}

func sqlite(t *testing.T) *sql.DB {
	return open(t, "sqlite", "file:"+t.TempDir()+"/fence.db?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)")
}

func installed(t *testing.T, name, pattern string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return path
		}
	}
	all, _ := filepath.Glob(pattern)
	if len(all) == 0 {
		t.Fatalf("%s is not installed: make contrib installs it on Debian", name)
	}
	return all[len(all)-1]
}

// folder makes a folder that the server may use. Databases refuse to run as root.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// command runs as nobody if the test runs as root. The new user would forget that it must die
// with the test, so that is said again.
func command(words ...string) *exec.Cmd {
	if os.Getuid() == 0 {
		words = append([]string{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig=KILL"}, words...)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = "/"
	return cmd
}

func run(t *testing.T, words ...string) {
	t.Helper()
	if out, err := command(words...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

func serve(t *testing.T, dir string, stop syscall.Signal, words ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(words...)
	cmd.Stdout, cmd.Stderr = log, log
	ended, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(stop)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("%s", said)
		}
		log.Close()
	})
}

// open waits until the server answers.
func open(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for end := time.Now().Add(time.Minute); db.Ping() != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not answer: %v", driver, db.Ping())
		}
	}
	return db
}
