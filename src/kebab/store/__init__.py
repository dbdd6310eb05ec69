"""Where knowledge is kept: one package per kind of store, which implements the ports of `core`."""
