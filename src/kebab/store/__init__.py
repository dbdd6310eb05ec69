"""Where knowledge is kept. One package per kind of store; each implements `core.store_ports` and `core.library_ports`."""
