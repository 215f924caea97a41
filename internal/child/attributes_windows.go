package child

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
