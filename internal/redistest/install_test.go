package redistest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// install runs .ci/install where nothing is installed but these programs.
func install(t *testing.T, programs map[string]string, packages ...string) (out string, err error) {
	t.Helper()
	path := t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(path, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(bash, append([]string{"../../.ci/install"}, packages...)...)
	c.Env = []string{"PATH=" + path}
	said, err := c.CombinedOutput()
	return string(said), err
}

const (
	asRoot   = "echo 0"
	asAUser  = "echo 1000"
	tellArgs = `echo apt-get "$@"`
)

func TestWhat_tests_need_is_installed_by_root_on_Debian(t *testing.T) {
	t.Parallel()
	out, err := install(t, map[string]string{"id": asRoot, "apt-get": tellArgs, "redis-server": ""}, "redis-server", "gcc", "mariadb-server-core")
	if err != nil || !strings.HasSuffix(out, "apt-get install -y -qq --no-install-recommends gcc libc6-dev mariadb-server-core\n") {
		t.Errorf("%s, error %v", out, err)
	}
}

func TestWhat_tests_need_is_named_where_it_cannot_be_installed(t *testing.T) {
	t.Parallel()
	for where, programs := range map[string]map[string]string{
		"no root":        {"id": asAUser, "apt-get": "exit 7"},
		"another system": {"id": asRoot},
	} {
		out, err := install(t, programs, "redis-server", "prometheus")
		want := "Not installed: redis-server prometheus. On Debian and Ubuntu: sudo apt-get install --no-install-recommends redis-server prometheus\n"
		if err == nil || out != want {
			t.Errorf("%s: %q, error %v", where, out, err)
		}
	}
}

func TestNothing_is_installed_where_all_is_there(t *testing.T) {
	t.Parallel()
	if out, err := install(t, map[string]string{"redis-server": "", "mariadbd": ""}, "redis-server", "mariadb-server-core"); err != nil || out != "" {
		t.Errorf("%q, error %v", out, err)
	}
}
