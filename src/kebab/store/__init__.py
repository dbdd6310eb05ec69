"""Where knowledge is kept. One package per kind of store; each implements the ports of `core.ports`."""
