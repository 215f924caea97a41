package bench

import (
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/monitor"
)

// countScripts is how many scripts the trial's masters have run for clients, 0
// if they do not say.
func (t *Trial) countScripts() (sum float64) {
	for _, m := range t.Masters {
		conn, err := monitor.Dial(m.URL())
		if err != nil {
			continue
		}
		info, _ := redis.String(conn.Do("INFO", "commandstats"))
		conn.Close()
		sum += calls(info, "evalsha") + calls(info, "eval")
	}
	return sum
}

// calls reads how often a command ran from INFO commandstats.
func calls(info, command string) float64 {
	_, line, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	n, _, _ := strings.Cut(line, ",")
	v, _ := strconv.ParseFloat(n, 64)
	return v
}
