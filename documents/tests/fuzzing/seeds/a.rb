class A
  def f
    if x then 1 end
  end
end
