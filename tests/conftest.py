from metal_ops import backend

# The device has to be there before the first backward pass of the process, whichever test makes it.
backend.register()
