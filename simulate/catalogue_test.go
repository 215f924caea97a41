package simulate

import "testing"

func TestCat(t *testing.T) {
	for _, s := range Catalogue {
		t.Run(s.Name, func(t *testing.T) {
			cfg := s.Config()
			cfg.Seeds = 200
			r, err := Run(cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("with    %v %v acq=%d/%d %v", r.Stats.Unsafe, r.Stats.Violations, r.Stats.Acquisitions, r.Stats.Calls, r.Took)
			for _, f := range r.Failures[:min(1, len(r.Failures))] {
				t.Log(f.Seed, f.Violations[0])
			}
			if cfg, ok := s.Without(); ok {
				cfg.Seeds = 200
				r, err := Run(cfg, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("without %v %v %v", r.Stats.Unsafe, r.Stats.Violations, r.Took)
				for _, f := range r.Failures[:min(1, len(r.Failures))] {
					t.Log(f.Seed, f.Violations[0])
				}
			}
		})
	}
}
