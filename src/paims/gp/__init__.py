"""Linear algebra and priors of a Gaussian process: the posterior of its hyper-parameters."""
