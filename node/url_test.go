package node

import (
	"strings"
	"testing"
)

func TestAddress_forms(t *testing.T) {
	for s, want := range map[string]address{
		"localhost":                          {network: "tcp", host: "localhost:6379"},
		"10.0.0.1:7001":                      {network: "tcp", host: "10.0.0.1:7001"},
		"::1":                                {network: "tcp", host: "[::1]:6379"},
		"[::1]":                              {network: "tcp", host: "[::1]:6379"},
		"[::1]:7001":                         {network: "tcp", host: "[::1]:7001"},
		"redis://host":                       {network: "tcp", host: "host:6379"},
		"redis://[fe80::1]:7001/":            {network: "tcp", host: "[fe80::1]:7001"},
		"redis://:s%40crt@host:1/3":          {network: "tcp", host: "host:1", password: "s@crt", db: 3},
		"valkey://ann:pw@host:1":             {network: "tcp", host: "host:1", user: "ann", password: "pw"},
		"rediss://ann:pw@host:1/0":           {network: "tcp", host: "host:1", user: "ann", password: "pw", tls: true},
		"valkeys://host":                     {network: "tcp", host: "host:6379", tls: true},
		"unix:///run/redis.sock":             {network: "unix", host: "/run/redis.sock"},
		"unix://ann:pw@/run/redis.sock?db=2": {network: "unix", host: "/run/redis.sock", user: "ann", password: "pw", db: 2},
	} {
		got, err := parseAddress(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", s, got, err, want)
		}
	}
}

func TestAddress_errors_name_the_part_and_hide_the_password(t *testing.T) {
	for s, want := range map[string]string{
		"":                              `host ""`,
		":6379":                         `host ""`,
		"two words:1":                   `host "two words"`,
		"host:":                         `port ""`,
		"host:0":                        `port "0"`,
		"host:65536":                    `port "65536"`,
		"host:http":                     "port: must be",
		"redis://u:hunter2":             "the port must be a number",
		"redis://:hunter2":              "the port must be a number",
		"redis://u:hunter2/0":           "the port must be a number",
		"redis://u:4711hunter2":         "the port must be a number",
		"redis://host/hunter2":          "database: must be",
		"redis://a:b@u:hunter2":         "the port must be a number",
		"u:hunter2":                     "port: must be",
		"redis://[::1]:hunter2":         "the port must be a number",
		"host/hunter2":                  "***",
		"host:1/hunter2":                "port",
		"redis://host#hunter2":          "fragment",
		"1:2:3":                         "IPv6 addresses go in brackets",
		"[::1]]":                        "must be host:port",
		"[a:b]":                         "must be host:port",
		"[::1":                          "must be host:port",
		"http://host":                   `scheme "http"`,
		"redis://":                      `host ""`,
		"redis://host/x":                "database: must be",
		"redis://host/-1":               `database "-1"`,
		"redis://host/1/2":              "database: must be",
		"redis://host/99999999999":      "database",
		"redis://host?db=1":             `parameter "db": unknown`,
		"redis://u:hunter2@host?x=1":    `parameter "x": unknown`,
		"redis://host?password=hunter2": `parameter "password": unknown`,
		"redis://host/0#x":              "fragment",
		"redis://hunter2@host":          "password: missing",
		"redis://ann:@host":             "password: missing",
		"redis://u:hunter2%zz@host":     "percent-encoded",
		"redis://u:hunter2/x@host":      "percent-encoded",
		"redis://u:hunter2?x@host":      "percent-encoded",
		"redis://u:hunter2#x@host":      "percent-encoded",
		"hunter2@host:1":                "go with a scheme",
		"unix://run/redis.sock":         "must be absolute",
		"unix:///":                      "must be absolute",
		"unix:///a?db=x":                "database: must be",
		"unix:///a?x=1&db=2":            `parameter "x"`,
		"unix:///a?%zz":                 "parameters",
	} {
		_, err := Open(s, Config{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", s, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
}

func TestAddress_is_shown_without_the_password(t *testing.T) {
	for s, want := range map[string]string{
		"redis://ann:hunter2@host:1/3":    "host:1",
		"unix://:hunter2@/run/redis.sock": "unix:/run/redis.sock",
	} {
		if a, err := parseAddress(s); err != nil || a.String() != want {
			t.Errorf("%q shown as %q, %v; want %q", s, a, err, want)
		}
	}
}
