"""Binary run files, read without the libraries that write them: TensorBoard's and W&B's."""
